/**
 * Prints test-vectors.json. The script shares no code with the service and the verifier: it computes signatures with
 * node:crypto alone. `pnpm --filter @callplane/webhook-verifier vectors` writes the file.
 */
import { createHmac } from 'node:crypto';

const SECRET_1 = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const SECRET_2 = 'whsec_/+7dzLuqmYh3ZlVEMyIRAA8eLTxLWmlIh5altMPS4fA=';
const NOW = 1767225600;
const SIGNATURE = 'x-service-signature';
const DELIVERY_ID = 'x-service-delivery-id';
const REPLAY_COUNT = 'x-service-replay-count';
const VERSION = 'x-service-signing-key-version';

const event = (data = {}) =>
  JSON.stringify({
    id: 'evt_01kdxw0000000000000000001',
    type: 'room.created',
    apiVersion: 'v1',
    createdAt: '2026-01-01T00:00:00.000Z',
    projectId: 'prj_1',
    environmentId: 'env_1',
    sequence: 1,
    data,
  });

const hmacHex = (secret, timestamp, deliveryId, replayCount, body) =>
  createHmac('sha256', Buffer.from(secret, 'utf8'))
    .update(Buffer.concat([Buffer.from(`${timestamp}.${deliveryId}.${replayCount}.`, 'ascii'), body]))
    .digest('hex');

/** A delivery as the service sends it; `change` then corrupts its headers or body. */
function vector(name, expected, options = {}) {
  const { secret = SECRET_1, version = '1', timestamp = NOW, deliveryId = 'dlv_01kdxw0000000000000000002' } = options;
  const { replayCount = '0', now = NOW, secrets = { 1: SECRET_1 }, change = (parts) => parts } = options;
  const body = Buffer.from(options.body ?? event({ room: { id: 'room_1', name: 'Standup' } }));
  const hex = hmacHex(secret, timestamp, deliveryId, replayCount, body);
  const headers = [
    [SIGNATURE, `t=${timestamp},v1=${hex}`],
    [DELIVERY_ID, deliveryId],
    [REPLAY_COUNT, replayCount],
    [VERSION, version],
  ];
  const sent = change({ headers, body, hex });
  const outcome =
    typeof expected === 'string'
      ? { ok: false, reason: expected }
      : { ok: true, deliveryId, replayCount: Number(replayCount), signingKeyVersion: Number(version) };
  return {
    name,
    secrets,
    nowUnixSeconds: now,
    headers: sent.headers ?? headers,
    bodyBase64: (sent.body ?? body).toString('base64'),
    expected: outcome,
  };
}

const set = (name, value) => ({
  change: ({ headers, hex }) => ({
    headers: headers.map((header) =>
      header[0] === name ? [name, typeof value === 'function' ? value(hex, header[1]) : value] : header,
    ),
  }),
});
const drop = (name) => ({ change: ({ headers }) => ({ headers: headers.filter((header) => header[0] !== name) }) });
const twice = (name) => ({
  change: ({ headers }) => ({
    headers: headers.flatMap((header) => (header[0] === name ? [header, header] : [header])),
  }),
});
const valid = true;
const both = { 1: SECRET_1, 2: SECRET_2 };

const vectors = [
  vector('a first delivery', valid),
  vector('a replay', valid, { replayCount: '3' }),
  vector('the hundredth replay', valid, { replayCount: '100' }),
  vector('a body beyond ASCII', valid, { body: event({ room: { name: 'Zoë’s 会議 😀' } }) }),
  vector('a body with signed leading and trailing white space', valid, { body: `${event()}\r\n ` }),
  vector('header names in upper case', valid, {
    change: ({ headers }) => ({ headers: headers.map(([name, value]) => [name.toUpperCase(), value]) }),
  }),
  vector('a secret with + and /', valid, { secret: SECRET_2, version: '2', secrets: { 2: SECRET_2 } }),
  vector('two secrets, signed with the older one', valid, { secrets: both }),
  vector('two secrets, signed with the newer one', valid, { secret: SECRET_2, version: '2', secrets: both }),
  vector('a list of secrets, signed with the second', valid, { secrets: [SECRET_2, SECRET_1] }),
  vector('a single secret', valid, { secrets: SECRET_1 }),
  vector('300 seconds old', valid, { now: NOW + 300 }),
  vector('300 seconds ahead', valid, { now: NOW - 300 }),
  vector('301 seconds old', 'timestamp_out_of_tolerance', { now: NOW + 301 }),
  vector('301 seconds ahead', 'timestamp_out_of_tolerance', { now: NOW - 301 }),
  vector('milliseconds for seconds', 'malformed_timestamp', { timestamp: `${NOW}000` }),
  vector('an empty timestamp', 'malformed_timestamp', { timestamp: '' }),
  vector('a timestamp with a leading zero', 'malformed_timestamp', { timestamp: `0${NOW}` }),
  vector('a timestamp with a fraction', 'malformed_timestamp', { timestamp: `${NOW}.0` }),
  vector('a timestamp with a sign', 'malformed_timestamp', { timestamp: `+${NOW}` }),
  vector('a timestamp with an exponent', 'malformed_timestamp', { timestamp: '17672256e2' }),
  vector('a negative timestamp', 'malformed_timestamp', { timestamp: `-${NOW}` }),
  vector('no signature', 'missing_header', drop(SIGNATURE)),
  vector('no delivery id', 'missing_header', drop(DELIVERY_ID)),
  vector('no replay count', 'missing_header', drop(REPLAY_COUNT)),
  vector('no version', 'missing_header', drop(VERSION)),
  vector('an empty signature', 'malformed_header', set(SIGNATURE, '')),
  vector(
    'a signature without its timestamp',
    'malformed_header',
    set(SIGNATURE, (hex) => `v1=${hex}`),
  ),
  vector(
    'a signature of another scheme',
    'malformed_header',
    set(SIGNATURE, (hex) => `t=${NOW},v0=${hex}`),
  ),
  vector(
    'the parts in reverse order',
    'malformed_header',
    set(SIGNATURE, (hex) => `v1=${hex},t=${NOW}`),
  ),
  vector(
    'white space inside the signature header',
    'malformed_header',
    set(SIGNATURE, (hex) => `t=${NOW}, v1=${hex}`),
  ),
  vector(
    'hexadecimal in upper case',
    'malformed_header',
    set(SIGNATURE, (hex) => `t=${NOW},v1=${hex.toUpperCase()}`),
  ),
  vector(
    'a signature cut short',
    'malformed_header',
    set(SIGNATURE, (_, value) => value.slice(0, -2)),
  ),
  vector(
    'two v1 signatures, one of them valid',
    'malformed_header',
    set(SIGNATURE, (hex, value) => `${value},v1=${hex}`),
  ),
  vector('the signature twice', 'malformed_header', twice(SIGNATURE)),
  vector('the delivery id twice', 'malformed_header', twice(DELIVERY_ID)),
  vector('the replay count twice', 'malformed_header', twice(REPLAY_COUNT)),
  vector('the version twice', 'malformed_header', twice(VERSION)),
  vector('a delivery id with a dot', 'malformed_header', { deliveryId: 'dlv_1.0' }),
  vector('an empty delivery id', 'malformed_header', { deliveryId: '' }),
  vector('a replay count with a leading zero', 'malformed_header', { replayCount: '00' }),
  vector('a replay count with a sign', 'malformed_header', { replayCount: '+1' }),
  vector('a negative replay count', 'malformed_header', { replayCount: '-1' }),
  vector('a replay count in hexadecimal', 'malformed_header', { replayCount: '0x1' }),
  vector('a version that is no number', 'malformed_header', { version: 'one' }),
  vector('an unknown version', 'unknown_signing_key_version', { secrets: { 2: SECRET_2 } }),
  vector('another delivery id', 'signature_mismatch', set(DELIVERY_ID, 'dlv_other')),
  vector('another replay count', 'signature_mismatch', set(REPLAY_COUNT, '1')),
  vector(
    'another timestamp',
    'signature_mismatch',
    set(SIGNATURE, (hex) => `t=${NOW + 1},v1=${hex}`),
  ),
  vector('another body', 'signature_mismatch', { change: () => ({ body: Buffer.from(event({ room: null })) }) }),
  vector('the body formatted anew', 'signature_mismatch', {
    change: ({ body }) => ({ body: Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2)) }),
  }),
  vector('a wrong secret', 'signature_mismatch', { secret: SECRET_2 }),
  vector('the version of another secret', 'signature_mismatch', { version: '2', secrets: both }),
  vector('the secret without its prefix as the key', 'signature_mismatch', { secret: SECRET_1.slice('whsec_'.length) }),
  vector('not JSON, and not signed', 'signature_mismatch', { change: () => ({ body: Buffer.from('{') }) }),
  vector('signed, but not JSON', 'malformed_json', { body: '{"id":' }),
  vector('signed, but empty', 'malformed_json', { body: '' }),
  vector('signed, but not an object', 'malformed_json', { body: '["evt_1"]' }),
  vector('signed, but not UTF-8', 'malformed_json', { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }),
];

const description =
  'Each vector is one request: `headers` as [name, value] pairs in the order sent, and the raw body. `secrets` is one ' +
  'secret, a list to try, or an object from version to secret. The tolerance is 300 seconds. The first check that fails ' +
  'gives the reason: headers, timestamp, version, signature, JSON.';
console.log(JSON.stringify({ description, vectors }, null, 2));
