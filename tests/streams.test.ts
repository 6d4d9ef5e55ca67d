import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { connect, type Call, type IncomingStream, type Platform } from '@callplane/client-js';
import type { Permission } from '@callplane/core';
import { eventually, stopAtEnd } from '@callplane/testing';
import { WebSocket } from 'ws';
import { startTestApi, type TestApi } from '../apps/api/src/api.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../apps/signaling/src/signaling.testkit.js';

const MIB = 1024 * 1024;

let kit: TestSignaling;
let api: TestApi;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two, api] = await Promise.all([kit.start(), kit.start({ RECONNECT_GRACE_SECONDS: '30' }), startTestApi()]);
  api = api.as(kit.tenant);
});

const addressOf = (gateway: TestInstance) => gateway.url.replace(/^http/, 'ws');
/** @param at the gateway of each connection, if that is not always the same */
async function call(
  gateway: TestInstance,
  roomId: string,
  { permissions, at = () => gateway }: { permissions?: Permission[]; at?: () => TestInstance } = {},
): Promise<Call> {
  const { token } = await kit.invite(roomId, permissions === undefined ? {} : { permissions });
  class Socket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(`${addressOf(at())}${new URL(url).pathname}`, protocols);
    }
  }
  const platform = { WebSocket: Socket as unknown as Platform['WebSocket'] };
  const joined = await connect({ url: addressOf(gateway), token, platform });
  stopAtEnd(() => joined.leave());
  return joined;
}
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const bytesOf = async (stream: IncomingStream) => new Uint8Array(await (await stream.blob()).arrayBuffer());
/** The next stream of the method, of which nothing is read. */
const nextStream = (receiver: Call, method: string) =>
  new Promise<IncomingStream>((resolve) => receiver.handleStream(method, resolve));
const idOf = (one: Call) => one.participant.participantId;

test('a stream of 4 MiB reaches participants of both gateways unchanged, and tells its progress', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob, cleo] = [await call(one, roomId), await call(two, roomId), await call(one, roomId)];
  await eventually(() => ada.participants.size === 2);
  const received = [bob, cleo].map(async (receiver) => {
    const stream = await nextStream(receiver, 'files');
    const seen: number[] = [];
    stream.onProgress = ({ bytes }) => void seen.push(bytes);
    const { name, contentType, size, attributes, from, participant } = stream;
    const hash = hashOf(await bytesOf(stream));
    return { name, contentType, size, attributes, from, sender: participant?.name, hash, seen };
  });
  const bytes = new Uint8Array(randomBytes(4 * MIB));
  const progress: number[] = [];
  const file = new File([bytes], 'plan.pdf', { type: 'application/pdf' });
  const sent = await ada.sendStream('files', file, {
    attributes: { page: '3' },
    onProgress: (now) => void progress.push(now.bytes),
  });
  expect([...sent.delivered].toSorted()).toEqual([idOf(bob), idOf(cleo)].toSorted());
  expect(sent.failed.size).toBe(0);
  for (const { seen, ...info } of await Promise.all(received)) {
    expect(info).toEqual({
      ...{ name: 'plan.pdf', contentType: 'application/pdf', size: 4 * MIB, attributes: { page: '3' } },
      ...{ from: idOf(ada), sender: 'Ada', hash: hashOf(bytes) },
    });
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toBe(4 * MIB);
  }
  expect(progress.length).toBeGreaterThan(10);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  expect(progress.at(-1)).toBe(4 * MIB);
  await expect(ada.sendStream('files', new Uint8Array(16 * MIB + 1))).rejects.toMatchObject({
    code: 'payload_too_large',
  });
});

test('text, nothing at all, and a source that is written meanwhile arrive', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob] = [await call(one, roomId), await call(two, roomId, { permissions: ['room:join'] })];
  await eventually(() => ada.participants.size === 1);
  const texts: string[] = [];
  bob.handleStream('text', async (stream) => void texts.push(await stream.text()));
  await ada.sendStream('text', 'Grüße');
  await ada.sendStream('text', '');
  await eventually(() => texts.length === 2);
  expect(texts).toEqual(['Grüße', '']);

  const incoming = nextStream(bob, 'live');
  const { readable, writable } = new TransformStream<string, string>();
  const sent = ada.sendStream('live', readable, { to: [idOf(bob)] });
  const writer = writable.getWriter();
  const reader = (await incoming).readable.getReader();
  const next = async () => new TextDecoder().decode((await reader.read()).value);
  await writer.write('first');
  expect(await next()).toBe('first');
  await writer.write('second');
  expect(await next()).toBe('second');
  await writer.close();
  expect((await reader.read()).done).toBe(true);
  expect((await sent).delivered).toEqual([idOf(bob)]);
  const wrong = new ReadableStream<string>({
    start: (controller) => {
      controller.enqueue('abc');
      controller.close();
    },
  });
  await expect(ada.sendStream('text', wrong, { size: 4 })).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('a page that reads nothing slows only the stream to it, which waits in bounded memory', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob, cleo] = [await call(one, roomId), await call(two, roomId), await call(one, roomId)];
  await eventually(() => ada.participants.size === 2 && bob.participants.size === 2);
  const bytes = new Uint8Array(randomBytes(0.6 * MIB));
  const [ofBob, ofCleo] = [nextStream(bob, 'files'), nextStream(cleo, 'files')];
  const other = nextStream(bob, 'other');
  let slowest = 0;
  const sent = ada.sendStream('files', bytes, { onProgress: (now) => void (slowest = now.bytes) });
  const unread = await ofBob;
  expect(hashOf(await bytesOf(await ofCleo))).toBe(hashOf(bytes));
  // Another stream to the same page, and the room, go their way.
  const second = ada.sendStream('other', bytes, { to: [idOf(bob)] });
  expect(hashOf(await bytesOf(await other))).toBe(hashOf(bytes));
  await second;
  await cleo.updateMetadata({ hand: true });
  await eventually(() => bob.participants.get(idOf(cleo))?.metadata['hand'] === true);
  expect(slowest).toBeLessThanOrEqual(256 * 1024);
  expect(hashOf(await bytesOf(unread))).toBe(hashOf(bytes));
  expect([...(await sent).delivered].toSorted()).toEqual([idOf(bob), idOf(cleo)].toSorted());
});

test('streams that fail say which side has failed, and why', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob, cleo] = [await call(one, roomId), await call(two, roomId), await call(one, roomId)];
  const mute = await call(one, roomId, { permissions: ['room:join'] });
  await eventually(() => ada.participants.size === 3);
  const bytes = new Uint8Array(MIB);
  const to = [idOf(bob)];
  const refused = (code: string) => ({ code, message: expect.any(String) });
  await expect(mute.sendStream('files', bytes)).rejects.toMatchObject(refused('permission_denied'));
  await expect(ada.sendStream('files', bytes, { to })).rejects.toMatchObject(refused('no_handler'));
  await expect(ada.sendStream('files', bytes, { to: ['part_x'] })).rejects.toMatchObject(refused('recipient_gone'));
  await expect(ada.sendStream('a b', bytes)).rejects.toMatchObject(refused('invalid_argument'));
  await expect(ada.sendStream('files', bytes, { to: [idOf(ada)] })).rejects.toMatchObject(refused('invalid_argument'));

  const problem = new Promise((resolve) => bob.once('problem', resolve));
  const remove = bob.handleStream('files', () => Promise.reject(new Error('disk full')));
  await expect(ada.sendStream('files', bytes, { to })).rejects.toMatchObject(refused('handler_failed'));
  expect(await problem).toMatchObject({ message: 'disk full' });
  remove();
  bob.handleStream('files', (stream) => stream.readable.cancel());
  await expect(ada.sendStream('files', bytes, { to })).rejects.toMatchObject(refused('stream_cancelled'));
  // Who handles it gets it, whatever the others say.
  cleo.handleStream('files', async (stream) => void (await stream.blob()));
  const { delivered, failed } = await ada.sendStream('files', bytes);
  expect(delivered).toEqual([idOf(cleo)]);
  expect(Object.fromEntries([...failed].map(([id, { code }]) => [id, code]))).toEqual({
    [idOf(bob)]: 'stream_cancelled',
    [idOf(mute)]: 'no_handler',
  });

  const abort = new AbortController();
  const given = ada.sendStream('slow', bytes, { to, signal: abort.signal });
  const slow = await nextStream(bob, 'slow');
  abort.abort();
  await expect(given).rejects.toMatchObject(refused('aborted'));
  await expect(slow.blob()).rejects.toMatchObject(refused('stream_aborted'));

  const toBob = cleo.sendStream('slow', bytes, { to });
  const ofCleo = await nextStream(bob, 'slow');
  const lost = expect(toBob).rejects.toMatchObject(refused('closed'));
  await cleo.leave();
  await lost;
  await expect(ofCleo.blob()).rejects.toMatchObject(refused('sender_gone'));

  const unread = nextStream(bob, 'slow');
  const last = expect(ada.sendStream('slow', bytes, { to })).rejects.toMatchObject(refused('recipient_gone'));
  const mine = await unread;
  await bob.leave();
  await last;
  await expect(mine.blob()).rejects.toMatchObject(refused('closed'));
});

test('a sender that loses the permission sends no more', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob] = [await call(one, roomId), await call(two, roomId)];
  await eventually(() => ada.participants.size === 1);
  const incoming = nextStream(bob, 'files');
  const sent = expect(ada.sendStream('files', new Uint8Array(2 * MIB))).rejects.toMatchObject({
    code: 'permission_denied',
  });
  const stream = await incoming;
  const { status } = await api.call('PATCH', `/v1/rooms/${roomId}/participants/${idOf(ada)}`, {
    body: { permissions: ['room:join'] },
  });
  expect(status).toBe(200);
  await eventually(() => !ada.permissions.includes('messages:send'));
  const read = expect(stream.blob()).rejects.toMatchObject({ code: 'stream_aborted' });
  await sent;
  await read;
});

test('a stream continues when the receiver, and then the sender, moves to another gateway', async () => {
  const roomId = await kit.newRoom();
  const [third, fourth] = await Promise.all(
    ['20', '21'].map((seconds) => kit.start({ RECONNECT_GRACE_SECONDS: seconds })),
  );
  let [atAda, atBob] = [fourth!, third!];
  const ada = await call(atAda, roomId, { at: () => atAda });
  const bob = await call(atBob, roomId, { at: () => atBob });
  await eventually(() => ada.participants.size === 1);
  const bytes = new Uint8Array(randomBytes(3 * MIB));
  const incoming = nextStream(bob, 'files');
  const sent = ada.sendStream('files', bytes);
  const reader = (await incoming).readable.getReader();
  const hash = createHash('sha256');
  let read = 0;
  const readTo = async (end: number) => {
    while (read < end) {
      const { value = new Uint8Array() } = await reader.read();
      hash.update(value);
      read += value.length;
    }
  };
  await readTo(MIB);
  atBob = two;
  await third!.close();
  await readTo(2 * MIB);
  atAda = one;
  await fourth!.close();
  await readTo(3 * MIB);
  expect((await reader.read()).done).toBe(true);
  expect(hash.digest('hex')).toBe(hashOf(bytes));
  expect((await sent).delivered).toEqual([idOf(bob)]);
});

test('streams at the usual rate of a connection never end it, and more streams than four wait for their turn', async () => {
  const gateway = await kit.start({ RATE_LIMIT_SIGNALING_PER_SECOND: '50', RATE_LIMIT_SIGNALING_BURST: '60' });
  const roomId = await kit.newRoom();
  const [ada, bob] = [await call(gateway, roomId), await call(gateway, roomId)];
  await eventually(() => ada.participants.size === 1);
  const ends: string[] = [];
  for (const one of [ada, bob]) one.on('state', (state) => void ends.push(state));
  bob.handleStream('files', async (stream) => void (await stream.blob()));
  await Promise.all(Array.from({ length: 8 }, () => ada.sendStream('files', new Uint8Array(150_000))));
  expect(ends).toEqual([]);
  expect(await gateway.valueOf('callplane_signaling_refusals_total{code="rate_limited"')).toBe(0);
});

test('the streams of an environment share a rate', async () => {
  const gateway = await kit.start({ RATE_LIMIT_STREAMS_KIB_PER_SECOND: '32' });
  const roomId = await kit.newRoom();
  const [ada, bob] = [await call(gateway, roomId), await call(gateway, roomId)];
  const eve = await kit.enter(gateway.url, roomId);
  await eventually(() => ada.participants.size === 2);
  bob.handleStream('files', async (stream) => void (await stream.blob()));
  const part = { type: 'part', to: [idOf(bob)], streamId: 's', offset: 0, data: 'A'.repeat(16_384) };
  const answers = await Promise.all(Array.from({ length: 40 }, () => eve.client.request(part)));
  expect(answers).toContainEqual(expect.objectContaining({ code: 'rate_limited' }));
  // The SDK waits, and sends its parts again.
  const sent = await ada.sendStream('files', new Uint8Array(100 * 1024), { to: [idOf(bob)] });
  expect(sent.delivered).toEqual([idOf(bob)]);
  expect(await gateway.valueOf('callplane_signaling_stream_bytes_total')).toBeGreaterThan(130_000);
});

test('hostile senders and receivers get small errors, and open streams are bounded', async () => {
  const roomId = await kit.newRoom();
  const bob = await call(two, roomId);
  const eve = await kit.enter(one.url, roomId);
  const mallory = await kit.enter(one.url, roomId, { permissions: ['room:join'] });
  await eventually(() => bob.participants.size === 2);
  const to = [idOf(bob)];
  const part = (more: object) => ({ type: 'part', to, streamId: 's1', offset: 0, data: 'AAAA', ...more });
  for (const more of [{ data: 'A!' }, { offset: -1 }, { offset: 17 * MIB }, { to: [] }])
    expect(await eve.client.ask(part(more), 'error')).toMatchObject({ code: 'invalid_message' });
  expect(await eve.client.ask(part({ data: 'A'.repeat(16_388) }), 'error')).toMatchObject({
    code: 'payload_too_large',
  });
  expect(await eve.client.ask(part({ to: ['part_x'] }), 'error')).toMatchObject({ code: 'not_found' });
  for (const more of [{}, { data: '' }, { aborted: true }])
    expect(await mallory.client.ask(part(more), 'error')).toMatchObject({ code: 'permission_denied' });
  await mallory.client.ask(part({ data: '', aborted: true }), 'ok');

  // Nobody has offered the stream.
  await eve.client.ask(part({}), 'ok');
  expect(await eve.client.until('credit')).toMatchObject({ streamId: 's1', failure: 'stream_unknown' });

  const offer = (streamId: string, payload: unknown) => ({ type: 'stream', to, streamId, method: 'files', payload });
  const creditOf = (streamId: string, fits: (credit: { received: number; failure?: string }) => boolean) =>
    eve.client.until('credit', (credit) => credit.streamId === streamId && fits(credit));
  const streams: IncomingStream[] = [];
  bob.handleStream('files', (stream) => void streams.push(stream));
  await eve.client.ask(offer('s2', { name: 7, size: 4, attributes: { a: 1, b: 'x' } }), 'ok');
  expect(await creditOf('s2', () => true)).toMatchObject({ received: 0, limit: 256 * 1024 });
  expect(streams[0]).toMatchObject({ name: undefined, size: 4, attributes: { b: 'x' }, from: eve.participantId });
  // A part that leaves a gap, and one that has come, change nothing.
  await eve.client.ask(part({ streamId: 's2', offset: 3 }), 'ok');
  await eve.client.ask(part({ streamId: 's2' }), 'ok');
  await creditOf('s2', ({ received }) => received === 3);
  await eve.client.ask(part({ streamId: 's2' }), 'ok');
  await eve.client.ask(part({ streamId: 's2', offset: 3 }), 'ok');
  await creditOf('s2', ({ failure }) => failure === 'stream_invalid');
  await expect(streams[0]!.blob()).rejects.toMatchObject({ code: 'stream_invalid' });
  await eve.client.ask(offer('s3', { size: 6 }), 'ok');
  await creditOf('s3', () => true);
  await eve.client.ask(part({ streamId: 's3', last: true }), 'ok');
  await creditOf('s3', ({ failure }) => failure === 'stream_invalid');
  // More than the credit.
  await eve.client.ask(offer('s4', {}), 'ok');
  await creditOf('s4', () => true);
  const data = Buffer.alloc(12_000).toString('base64');
  for (let n = 0; n < 22; n++) await eve.client.ask(part({ streamId: 's4', offset: n * 12_000, data }), 'ok');
  await creditOf('s4', ({ failure }) => failure === 'stream_invalid');

  for (let n = 0; n < 9; n++) await eve.client.ask(offer(`open${n}`, {}), 'ok');
  expect(await creditOf('open8', () => true)).toMatchObject({ failure: 'too_many_streams' });
  expect(streams).toHaveLength(3 + 8);

  // A receiver that claims what it was not sent, and one that grants nothing.
  const seen: number[] = [];
  const abort = new AbortController();
  const toEve = bob.sendStream('files', new Uint8Array(MIB), {
    to: [eve.participantId],
    signal: abort.signal,
    onProgress: ({ bytes }) => void seen.push(bytes),
  });
  const { streamId } = await eve.client.until('stream');
  const credit = { type: 'credit', to: idOf(bob), streamId };
  await eve.client.ask({ ...credit, received: MIB, limit: 2 * MIB, done: true }, 'ok');
  await eve.client.ask({ ...credit, streamId: 'another', received: 0, limit: MIB }, 'ok');
  await eve.client.ask({ ...credit, received: 0, limit: 0 }, 'ok');
  // It is asked again, and gets no bytes.
  expect(await eve.client.until('part', (one) => one.streamId === streamId)).toMatchObject({ offset: 0, data: '' });
  expect(seen.filter((bytes) => bytes > 0)).toEqual([]);
  abort.abort();
  await expect(toEve).rejects.toMatchObject({ code: 'aborted' });
  expect(await eve.client.until('part', ({ aborted }) => aborted === true)).toMatchObject({ streamId });
});

test('a client that does not read its connection loses parts, which leaves the connection to other messages', async () => {
  const roomId = await kit.newRoom();
  const [bob, eve] = [await kit.enter(two.url, roomId), await kit.enter(one.url, roomId)];
  await eve.client.untilOthers((others) => others.has(bob.participantId));
  const data = 'A'.repeat(16_384);
  const part = { type: 'part', to: [bob.participantId], streamId: 's', offset: 0, data };
  bob.client.socket.pause();
  const dropped = () => two.valueOf('callplane_signaling_parts_dropped_total');
  while ((await dropped()) === 0) for (let n = 0; n < 50; n++) await eve.client.request(part);
  await eve.client.ask({ type: 'message', data: 'after the parts' }, 'ok');
  bob.client.socket.resume();
  expect(await bob.client.until('message')).toMatchObject({ data: 'after the parts' });
  expect(bob.client.closed).toBeNull();
});
