import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CLOSE_REASONS, PROTOCOL_LIMITS } from '@callplane/protocol';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import { connectClient, type TestClient } from '../client.testkit.js';
import { hostileMessages } from './hostile-frames.testkit.js';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

const SETTINGS = {
  RATE_LIMIT_SIGNALING_PER_SECOND: '1',
  RATE_LIMIT_SIGNALING_BURST: '300',
  RATE_LIMIT_MESSAGES_PER_SECOND: '1',
  RATE_LIMIT_MESSAGES_BURST: '10',
  RATE_LIMIT_METADATA_PER_SECOND: '1',
  RATE_LIMIT_METADATA_BURST: '3',
  MAX_CONNECTIONS: '60',
};

let kit: TestSignaling;
let gateway: TestInstance;
let roomId: string;
/** A participant in the same room, whom hostile clients must never affect. */
let witness: Joined;
beforeAll(async () => {
  kit = await startTestSignaling();
  gateway = await kit.start(SETTINGS);
  roomId = await kit.newRoom();
  witness = await kit.enter(gateway.url, roomId);
});
/** Resolves once the witness alone is connected. */
const othersGone = () => eventually(async () => (await gateway.valueOf('callplane_signaling_connections{')) === 1);
beforeEach(async () => {
  await othersGone();
});

const joined = async () => (await kit.enter(gateway.url, roomId)).client;
const closes = async (client: TestClient, reason: keyof typeof CLOSE_REASONS) => {
  await client.untilClosed(reason);
  expect(client.closed).toEqual({ code: CLOSE_REASONS[reason].code, reason });
  await witness.client.ask({ type: 'ping' }, 'pong');
};

describe('the gateway closes a connection', () => {
  test('for a first message that is invalid, or neither join nor resume', async () => {
    for (const first of [
      { type: 'ping' },
      { type: 'join' },
      { type: 'publish', sdp: 'v=0', tracks: [] },
      { type: 'x' },
    ]) {
      const client = await connectClient(gateway.url);
      client.send(first);
      await closes(client, 'protocol_error');
    }
  });

  test('for a frame beyond the limit, and without reading it if it is far beyond', async () => {
    const client = await joined();
    client.raw('x'.repeat(PROTOCOL_LIMITS.frameBytesMax + 1));
    await closes(client, 'message_too_large');
    const huge = await joined();
    huge.raw('x'.repeat(5_000_000));
    await huge.untilClosed();
    expect(huge.closed?.code).toBe(1009);
  });

  test('for a first frame beyond 10 KiB, without parsing it', async () => {
    const frame = (bytes: number) => {
      const head = '{"type":"join","token":"x","id":"';
      return `${head}${'y'.repeat(bytes - head.length - 2)}"}`;
    };
    const client = await connectClient(gateway.url);
    client.raw(frame(PROTOCOL_LIMITS.firstFrameBytesMax + 1));
    await closes(client, 'message_too_large');
    expect(client.of('error')).toEqual([]);
    const parsed = await connectClient(gateway.url);
    parsed.raw(frame(PROTOCOL_LIMITS.firstFrameBytesMax));
    await closes(parsed, 'protocol_error');
    expect(parsed.of('error')[0]?.details).toEqual([{ path: 'id', message: expect.any(String) }]);
  });

  test('for a first message that stays unfinished, in one large frame or in many fragments', async () => {
    const inPieces = async (bytes: number, count: number) => {
      const client = await connectClient(gateway.url);
      for (let n = 0; n < count && client.closed === null; n++) {
        client.socket.send('y'.repeat(bytes), { fin: false });
        if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await client.untilClosed();
      return client;
    };
    const large = await inPieces(8 * 1024, 8);
    expect(large.closed?.reason).toBe('message_too_large');
    // ws itself closes a connection that sends too many fragments, with the code for a policy violation.
    const many = await inPieces(1, 200);
    expect(many.closed?.code).toBe(1008);
  });

  test('for large messages at a rate that small ones may have', async () => {
    const client = await joined();
    const frame = JSON.stringify({ type: 'message', data: 'y'.repeat(PROTOCOL_LIMITS.frameBytesMax - 100) });
    for (let n = 0; n < 40 && client.closed === null; n++) client.raw(frame);
    await closes(client, 'rate_limited');
  });

  test('for a flood of messages, pings or invalid messages', async () => {
    const client = await joined();
    for (let n = 0; n < 1000; n++) client.send({ type: 'ping' });
    await closes(client, 'rate_limited');
    const pinging = await joined();
    for (let n = 0; n < 1000; n++) pinging.socket.ping();
    // Either the gateway closes it, or ws does because unsent pongs pile up.
    await pinging.untilClosed();
    // An invalid message costs more tokens.
    const wrong = await joined();
    for (let n = 0; n < 60; n++) wrong.send({ type: 'mute' });
    await closes(wrong, 'rate_limited');
  });
});

test('refuses ICE restarts above the limit of a session', async () => {
  const client = await joined();
  for (let n = 0; n < 12; n++) client.send({ type: 'restartIce' });
  await client.until('error', ({ code }) => code === 'rate_limited');
  // There is no receiving connection to restart.
  expect(client.of('error').slice(0, 6)).toEqual(Array(6).fill(expect.objectContaining({ code: 'conflict' })));
  client.send({ type: 'leave' });
  await client.untilClosed('left');
});

test.each([
  ['11,000 numbers below a long key', `{"type":"message","${'k'.repeat(60_000)}":[${'9e999,'.repeat(11_000)}1]}`],
  [
    '12,000 unknown fields',
    `{"type":"ping",${Array.from({ length: 12_000 }, (_, n) => `"${n.toString(36)}":1`).join(',')}}`,
  ],
  ['an unknown field of 120,000 characters', `{"type":"ping","${'\\u0001'.repeat(20_000)}":1}`],
  ['invalid recipients', `{"type":"message","data":1,"to":[${'"a b",'.repeat(20_000)}"c"]}`],
  [
    'tracks full of unknown fields',
    `{"type":"subscribe","tracks":[${`{${'"a":1,'.repeat(40)}"b":1},`.repeat(480)}{}]}`,
  ],
  ['duplicate keys', `{${'"type":"ping",'.repeat(8000)}"type":"ping"}`],
])('answers a frame with %s briefly', async (_, frame) => {
  expect(Buffer.byteLength(frame)).toBeLessThanOrEqual(PROTOCOL_LIMITS.frameBytesMax);
  const client = await joined();
  client.raw(frame);
  const answer = await client.until('error');
  expect(answer.code).toBe('invalid_message');
  expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(16 * 1024);
  expect(answer.details!.length).toBeGreaterThan(0);
  expect(answer.details!.length).toBeLessThanOrEqual(20);
  for (const { path } of answer.details!) expect(path.length).toBeLessThanOrEqual(200);
  client.send({ type: 'leave' });
  await client.untilClosed('left');
});

test('measures metadata as a read returns it, with its numbers in full', async () => {
  const client = await joined();
  const numbers = (count: number) => ({
    type: 'metadata',
    metadata: { n: Array.from({ length: count }, () => 1e308) },
  });
  // The API refuses such metadata with the same words.
  const message = expect.stringMatching(/^must be at most 16384 bytes as a read returns it, not \d+$/);
  expect(await client.ask(numbers(60), 'error')).toMatchObject({
    code: 'payload_too_large',
    details: [{ path: 'metadata', message }],
  });
  await eventually(() => gateway.log().includes('as a read returns it, not'));
  await client.ask(numbers(50), 'ok');
  client.send({ type: 'leave' });
  await client.untilClosed('left');
});

test('refuses application messages and metadata beyond their own limits, and keeps the connection open', async () => {
  const client = await joined();
  const isRefused = async (message: object) => {
    const { type, code } = (await client.request(message)) as { type: string; code?: string };
    expect([type, code]).toEqual(type === 'ok' ? ['ok', undefined] : ['error', 'rate_limited']);
    return type === 'error';
  };
  for (const message of [
    { type: 'message', data: 1 },
    { type: 'metadata', metadata: {} },
  ]) {
    // Tokens come back meanwhile.
    await eventually(() => isRefused(message), { intervalMs: 0 });
  }
  await client.ask({ type: 'ping' }, 'pong');
  client.send({ type: 'leave' });
  await client.untilClosed('left');
});

test('accepts no more connections than its limit', async () => {
  const clients = await Promise.all(Array.from({ length: 59 }, () => connectClient(gateway.url)));
  await expect(connectClient(gateway.url)).rejects.toThrow('503');
  for (const client of clients) client.terminate();
});

test('answers any sequence of messages or closes the connection with a reason, without affecting others', async () => {
  const message = fc.oneof(
    fc.record({ type: fc.constantFrom('leave', 'nonsense') }),
    { weight: 8, arbitrary: hostileMessages(['a', 'mic', 'part_x', witness.participantId, witness.welcome.sessionId]) },
    fc.jsonValue(),
  );
  const messages = fc.array(message, { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(messages, fc.boolean(), async (sent, enters) => {
      const client = enters ? await joined() : await connectClient(gateway.url);
      for (const one of sent) client.raw(JSON.stringify(one));
      if (client.closed === null) client.send({ type: 'leave' });
      const closing = await client.untilClosed();
      const reasons = ['left', 'protocol_error', 'rate_limited', 'invalid_session', 'invalid_token'];
      expect([...reasons, 'too_many_attempts']).toContain(closing?.reason);
    }),
    { numRuns: 60 },
  );
  await witness.client.ask({ type: 'ping' }, 'pong');
  expect(witness.client.closed).toBeNull();
  expect(gateway.log()).not.toContain('"level":"error"');
});

test('delivers a welcome larger than the send buffer limit to a client that reads it', async () => {
  const crowded = await kit.newRoom();
  const metadata = { about: 'x'.repeat(15_000) };
  const others = await Promise.all(Array.from({ length: 40 }, () => kit.enter(gateway.url, crowded, { metadata })));
  await kit.database.prisma.participant.updateMany({
    where: { roomId: crowded },
    data: { metadata: { about: 'y'.repeat(60_000) } },
  });
  // Another instance, because this one does not know of the metadata.
  const fresh = await kit.start();
  const late = await kit.enter(fresh.url, crowded);
  expect(JSON.stringify(late.welcome).length).toBeGreaterThan(2_000_000);
  await late.client.ask({ type: 'ping' }, 'pong');
  await kit.end(crowded);
  await Promise.all([late, ...others].map(({ client }) => client.untilClosed('room_ended')));
});
