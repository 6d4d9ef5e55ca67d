import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { generateSigningSecret, SIGNATURE_CONTRACT, signDelivery } from '@callplane/core';
import fc from 'fast-check';
import { verifyWebhook, type WebhookHeaders } from './index.js';

const file = readFileSync(join(import.meta.dirname, '..', 'test-vectors.json'), 'utf8');
interface Vector {
  name: string;
  secrets: any;
  nowUnixSeconds: number;
  headers: [string, string][];
  bodyBase64: string;
  expected: { ok: true } | { ok: false; reason: string };
}
const vectors: Vector[] = JSON.parse(file).vectors;

/** The same headers in the shape that each kind of server provides. */
function everyShape(pairs: [string, string][]): Record<string, WebhookHeaders> {
  const joined: Record<string, string> = {};
  const distinct: Record<string, string[]> = {};
  const plain: Record<string, string | string[]> = {};
  const fetched = new Headers();
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    joined[key] = key in joined ? `${joined[key]}, ${value}` : value;
    (distinct[key] ??= []).push(value);
    plain[name] = name in plain ? [plain[name]!, value].flat() : value;
    fetched.append(name, value);
  }
  return { IncomingHttpHeaders: joined, headersDistinct: distinct, 'plain object': plain, 'Fetch Headers': fetched };
}

describe('test-vectors.json', () => {
  test.each(vectors)('$name', ({ secrets, nowUnixSeconds, headers, bodyBase64, expected }) => {
    const bytes = Buffer.from(bodyBase64, 'base64');
    const now = new Date(nowUnixSeconds * 1000);
    for (const [shape, each] of Object.entries(everyShape(headers))) {
      const result = verifyWebhook({ headers: each, rawBody: bytes, secrets, now });
      expect([shape, result]).toMatchObject([shape, expected]);
      if (result.ok) expect(result.event).toEqual(JSON.parse(bytes.toString()));
      else expect(result.message).toMatch(/^[A-Z].*\.$/);
      expect(verifyWebhook({ headers: each, rawBody: new Uint8Array(bytes), secrets, now })).toEqual(result);
      if (Buffer.from(bytes.toString()).equals(bytes)) {
        expect(verifyWebhook({ headers: each, rawBody: bytes.toString(), secrets, now })).toEqual(result);
      }
    }
  });
});

const deliveries = fc.record({
  secret: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(generateSigningSecret),
  timestampUnixSeconds: fc.integer({ min: 0, max: 4_102_444_800 }),
  deliveryId: fc.string({ unit: fc.constantFrom('a', 'z', 'A', 'Z', '0', '9', '_', '-'), minLength: 1, maxLength: 40 }),
  replayCount: fc.nat(100),
  body: fc
    .dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ stringUnit: 'binary' }))
    .map((value) => JSON.stringify(value)),
});

function headersOf(signature: string, { deliveryId, replayCount }: { deliveryId: string; replayCount: number }) {
  return {
    [SIGNATURE_CONTRACT.signatureHeader]: signature,
    [SIGNATURE_CONTRACT.deliveryIdHeader]: deliveryId,
    [SIGNATURE_CONTRACT.replayCountHeader]: String(replayCount),
    [SIGNATURE_CONTRACT.secretVersionHeader]: '7',
  };
}

/** HMAC as RFC 2104 defines it, built from the hash alone. */
function hmacSha256Hex(key: Buffer, message: Buffer): string {
  const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
  const block = Buffer.alloc(64);
  (key.length > 64 ? sha256(key) : key).copy(block);
  const pad = (mask: number) => Buffer.from(block.map((byte) => byte ^ mask));
  return sha256(pad(0x5c), sha256(pad(0x36), message)).toString('hex');
}

describe('sender and verifier', () => {
  test('agree with each other and with an independent implementation', () => {
    fc.assert(
      fc.property(deliveries, (delivery) => {
        const { secret, timestampUnixSeconds, deliveryId, replayCount, body } = delivery;
        const signed = Buffer.from(`${timestampUnixSeconds}.${deliveryId}.${replayCount}.${body}`);
        const independent = `t=${timestampUnixSeconds},v1=${hmacSha256Hex(Buffer.from(secret), signed)}`;
        expect(signDelivery(delivery)).toBe(independent);
        const now = new Date(timestampUnixSeconds * 1000);
        expect(
          verifyWebhook({ headers: headersOf(independent, delivery), rawBody: body, secrets: { 7: secret }, now }),
        ).toEqual({ ok: true, event: JSON.parse(body), deliveryId, replayCount, signingKeyVersion: 7 });
      }),
    );
  });

  test('report a reason for any header values and never throw an exception', () => {
    const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.constant(undefined));
    const keys = [
      SIGNATURE_CONTRACT.signatureHeader,
      SIGNATURE_CONTRACT.deliveryIdHeader,
      'constructor',
      '__proto__',
      'get',
    ];
    fc.assert(
      fc.property(
        fc.dictionary(fc.oneof(fc.constantFrom(...keys), fc.string()), value),
        fc.uint8Array(),
        (headers, rawBody) => {
          expect(verifyWebhook({ headers, rawBody, secrets: 'whsec_x' }).ok).toBe(false);
        },
      ),
    );
  });
});

describe('the caller', () => {
  const delivery = {
    secret: 'whsec_a',
    timestampUnixSeconds: 1767225600,
    deliveryId: 'dlv_1',
    replayCount: 0,
    body: '{}',
  };
  const call = (changes: object) =>
    verifyWebhook({
      headers: headersOf(signDelivery(delivery), delivery),
      rawBody: delivery.body,
      secrets: delivery.secret,
      now: new Date(delivery.timestampUnixSeconds * 1000),
      ...changes,
    });

  test('may pass secrets in a Map, with versions as numbers or strings', () => {
    expect(call({ secrets: new Map([[7, 'whsec_a']]) }).ok).toBe(true);
    expect(call({ secrets: new Map([['7', 'whsec_a']]) }).ok).toBe(true);
    expect(call({ secrets: new Map([[8, 'whsec_a']]) })).toMatchObject({ reason: 'unknown_signing_key_version' });
    expect(call({ secrets: {} })).toMatchObject({ reason: 'unknown_signing_key_version' });
  });

  test('may choose another tolerance, which is exact to the millisecond', () => {
    const at = (seconds: number) => new Date((delivery.timestampUnixSeconds + seconds) * 1000);
    expect(call({ now: at(5), toleranceSeconds: 5 }).ok).toBe(true);
    expect(call({ now: at(5.001), toleranceSeconds: 5 })).toMatchObject({ reason: 'timestamp_out_of_tolerance' });
    expect(call({ now: at(300.001) })).toMatchObject({ reason: 'timestamp_out_of_tolerance' });
    // Without `now` the current time counts, and that delivery is old.
    expect(call({ now: undefined })).toMatchObject({ reason: 'timestamp_out_of_tolerance' });
  });

  test.each([
    ['a body that was parsed', { rawBody: {} }],
    ['no body', { rawBody: undefined }],
    ['no secret', { secrets: undefined }],
    ['an empty secret', { secrets: '' }],
    ['an empty list', { secrets: [] }],
    ['a list with a hole', { secrets: ['whsec_a', undefined] }],
    ['a version without a secret', { secrets: { 7: '' } }],
    ['a secret without its prefix', { secrets: 'a' }],
    ['an invalid clock', { now: new Date(NaN) }],
    ['a tolerance that is no number', { toleranceSeconds: NaN }],
    ['a negative tolerance', { toleranceSeconds: -1 }],
  ])('gets a TypeError at once for %s', (_name, changes) => {
    expect(() => call(changes)).toThrow(TypeError);
  });
});
