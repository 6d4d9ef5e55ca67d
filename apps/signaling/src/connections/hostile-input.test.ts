import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CLOSE_REASONS, PROTOCOL_LIMITS } from '@callplane/protocol';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import { connectClient, type TestClient } from '../client.testkit.js';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

const LIMITS = {
  general: { perSecond: 100, burst: 300 },
  messages: { perSecond: 5, burst: 10 },
  metadata: { perSecond: 1, burst: 3 },
};

let kit: TestSignaling;
let gateway: TestInstance;
let roomId: string;
/** Somebody in the same room, who must never notice. */
let witness: Joined;
beforeAll(async () => {
  kit = await startTestSignaling();
  gateway = await kit.start({ limits: LIMITS, connectionsMax: 60, allowedOrigins: ['https://app.example.com'] });
  roomId = await kit.newRoom();
  witness = await kit.enter(gateway.url, roomId);
});
afterAll(() => kit.close());
beforeEach(async () => {
  await eventually(() => gateway.gateway.connections.count === 1);
});

const joined = async () => (await kit.enter(gateway.url, roomId)).client;
const closes = async (client: TestClient, reason: keyof typeof CLOSE_REASONS, timeoutMs = 5000) => {
  await client.untilClosed(reason, timeoutMs);
  expect(client.closed).toEqual({ code: CLOSE_REASONS[reason].code, reason });
  await witness.client.ask({ type: 'ping' }, 'pong');
};

describe('a connection is closed with its reason', () => {
  test.each<[string, string | Buffer]>([
    ['for what is no JSON', '{"type":'],
    ['for what is no object', '[]'],
    ['for a message without a type', '{}'],
    ['for binary frames', Buffer.from('{"type":"ping"}')],
  ])('%s', async (_, frame) => {
    const client = await joined();
    client.raw(frame);
    await closes(client, 'protocol_error');
  });

  test('for a first message that is neither join nor resume, or is wrong', async () => {
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

  test('for a frame beyond the limit; one that is far beyond it is not read at all', async () => {
    const client = await joined();
    client.raw('x'.repeat(PROTOCOL_LIMITS.frameBytesMax + 1));
    await closes(client, 'message_too_large');
    const huge = await joined();
    huge.raw('x'.repeat(5_000_000));
    await huge.untilClosed();
    expect(huge.closed?.code).toBe(1009);
  });

  test('for a flood, of messages or of pings', async () => {
    const client = await joined();
    for (let n = 0; n < 1000; n++) client.send({ type: 'ping' });
    await closes(client, 'rate_limited');
    const pinging = await joined();
    for (let n = 0; n < 1000; n++) pinging.socket.ping();
    // Here or by ws itself, which cuts those whose pongs pile up.
    await pinging.untilClosed();
    // Wrong messages count for more.
    const wrong = await joined();
    for (let n = 0; n < 60; n++) wrong.send({ type: 'mute' });
    await closes(wrong, 'rate_limited');
  });

  test('for not reading what it is sent: what waits for it stays bounded', async () => {
    const slow = await joined();
    slow.socket.pause();
    const sender = await kit.enter(gateway.url, roomId);
    const before = process.memoryUsage().rss;
    // Beyond what the sockets of both sides buffer.
    const data = 'x'.repeat(60_000);
    const { rooms } = gateway.gateway.sessions;
    const { view } = [...gateway.gateway.sessions.all].find(({ sessionId }) => sessionId === sender.welcome.sessionId)!;
    for (let n = 0; n < 400 && gateway.gateway.connections.count === 3; n++) {
      await rooms.pass(view, sender.participantId, null, data, 'now');
      await new Promise(setImmediate);
    }
    await eventually(() => gateway.log().includes('slow_consumer'));
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
    expect(witness.client.of('message').length).toBeGreaterThan(10);
    slow.terminate();
    sender.client.send({ type: 'leave' });
    await sender.client.untilClosed('left');
  }, 20_000);

  test('for saying nothing at first', async () => {
    const client = await connectClient(gateway.url);
    await closes(client, 'timeout', 13_000);
  }, 15_000);
});

test('one that answers no ping is closed', async () => {
  const quick = await kit.start({ pingIntervalSeconds: 1 });
  const { client } = await kit.enter(quick.url, roomId);
  const alive = await kit.enter(quick.url, roomId);
  client.socket.pause();
  await eventually(() => quick.log().includes('"reason":"timeout"'), { timeoutMs: 8000 });
  await alive.client.ask({ type: 'ping' }, 'pong');
  client.terminate();
  await quick.close();
}, 15_000);

test('application messages and metadata have limits of their own, which close nothing', async () => {
  const client = await joined();
  const codes: string[] = [];
  for (let n = 0; n < 14; n++) {
    const answer = await client.request({ type: 'message', data: n });
    codes.push(answer.type === 'error' ? answer.code : answer.type);
  }
  expect(codes.slice(0, 10)).toEqual(Array(10).fill('ok'));
  expect(codes).toContain('rate_limited');
  for (let n = 0; n < 3; n++) await client.ask({ type: 'metadata', metadata: { n } }, 'ok');
  expect(await client.ask({ type: 'metadata', metadata: {} }, 'error')).toMatchObject({ code: 'rate_limited' });
  await client.ask({ type: 'ping' }, 'pong');
  client.send({ type: 'leave' });
  await client.untilClosed('left');
});

describe('the door', () => {
  const status = (path: string, headers: Record<string, string>) =>
    new Promise<string>((resolve, reject) => {
      const { port } = new URL(gateway.url);
      const socket = connect(Number(port), '127.0.0.1', () => {
        const all = {
          host: 'x',
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
          ...headers,
        };
        socket.write(
          `GET ${path} HTTP/1.1\r\n${Object.entries(all)
            .map(([k, v]) => `${k}: ${v}\r\n`)
            .join('')}\r\n`,
        );
      });
      socket.once('data', (data) => {
        resolve(data.toString().split(' ')[1]!);
        socket.destroy();
      });
      socket.once('error', reject);
    });

  test('lets in the right path, sub-protocol and origin, and no more than there is room for', async () => {
    const own = { 'sec-websocket-protocol': 'other, callplane.v1' };
    expect(await status('/v1/signaling', own)).toBe('101');
    expect(await status('/v1/signaling?x=1', { ...own, origin: 'https://app.example.com' })).toBe('101');
    expect(await status('/v1/signaling', { ...own, origin: 'https://evil.example.com' })).toBe('403');
    expect(await status('/v1/signaling', { ...own, origin: 'null' })).toBe('403');
    expect(await status('/v1/signaling', {})).toBe('400');
    expect(await status('/v1/signaling', { 'sec-websocket-protocol': 'callplane.v2' })).toBe('400');
    expect(await status('/v1/rooms', own)).toBe('404');
    await eventually(() => gateway.gateway.connections.count === 1);
    const clients = await Promise.all(Array.from({ length: 59 }, () => connectClient(gateway.url)));
    expect(await status('/v1/signaling', own)).toBe('503');
    for (const client of clients) client.terminate();
    await eventually(() => gateway.gateway.connections.count === 1);
  });

  test('answers health, and nothing else', async () => {
    expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect((await fetch(`${gateway.url}/demo/`)).status).toBe(404);
  });
});

test('whatever comes in whatever order: it is answered or the connection is closed with a reason; others never notice', async () => {
  const word = fc.constantFrom('a', '0', 'mic', 'part_x', witness.participantId);
  const message = fc.oneof(
    fc.record({ type: fc.constant('publish'), sdp: fc.string(), tracks: fc.constant([]) }),
    fc.record({ type: fc.constant('answer'), offerId: fc.integer(), sdp: fc.string({ minLength: 1 }) }),
    fc.record({
      type: fc.constant('candidate'),
      target: fc.constantFrom('publisher', 'subscriber', 'x'),
      candidate: fc.constantFrom(null, { candidate: 'candidate:1 1 udp 1 1.1.1.1 1 typ host' }, { candidate: 5 }),
    }),
    fc.record({ type: fc.constant('mute'), trackId: word, muted: fc.boolean() }),
    fc.record({
      type: fc.constantFrom('subscribe', 'unsubscribe'),
      tracks: fc.array(fc.record({ participantId: word, trackId: word }), { maxLength: 5 }),
    }),
    fc.record({ type: fc.constant('message'), data: fc.jsonValue(), to: fc.array(word, { maxLength: 3 }) }),
    fc.record({ type: fc.constantFrom('unpublish', 'ping', 'iceServers', 'leave', 'join', 'resume', 'nonsense') }),
    fc.record({ type: fc.constant('resetMedia'), targets: fc.array(fc.constantFrom('publisher', 'subscriber', 'x')) }),
    fc.record({ type: fc.constant('resume'), sessionId: fc.constant(witness.welcome.sessionId), resumeSecret: word }),
    fc.jsonValue(),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 12 }), fc.boolean(), async (messages, enters) => {
      const client = enters ? await joined() : await connectClient(gateway.url);
      for (const one of messages) client.raw(JSON.stringify(one));
      if (client.closed === null) client.send({ type: 'leave' });
      const closing = await client.untilClosed();
      expect(['left', 'protocol_error', 'rate_limited', 'invalid_session']).toContain(closing?.reason);
    }),
    { numRuns: 60 },
  );
  await witness.client.ask({ type: 'ping' }, 'pong');
  expect(witness.client.closed).toBeNull();
  expect(gateway.log()).not.toContain('"level":"error"');
}, 60_000);

test('a welcome that is larger than what may wait reaches who reads it', async () => {
  const crowded = await kit.newRoom();
  const metadata = { about: 'x'.repeat(15_000) };
  const others = await Promise.all(Array.from({ length: 40 }, () => kit.enter(gateway.url, crowded, { metadata })));
  await kit.database.prisma.participant.updateMany({
    where: { roomId: crowded },
    data: { metadata: { about: 'y'.repeat(60_000) } },
  });
  const late = await kit.enter(gateway.url, crowded);
  expect(JSON.stringify(late.welcome).length).toBeGreaterThan(2_000_000);
  await late.client.ask({ type: 'ping' }, 'pong');
  await kit.end(crowded);
  await Promise.all([late, ...others].map(({ client }) => client.untilClosed('room_ended')));
});
