import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CLOSE_REASONS, PROTOCOL_LIMITS, type CloseReason } from '@callplane/protocol';
import { eventually } from '@callplane/testing';
import { connectClient, type TestClient } from '../client.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

const GENERAL_BURST = 50;

let kit: TestSignaling;
let usual: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  usual = await kit.start({
    rosterFullMax: 2,
    limits: { general: { perSecond: 1, burst: GENERAL_BURST } },
  });
});
afterAll(() => kit.close());

async function send(message: object, instance = usual): Promise<TestClient> {
  const client = await connectClient(instance.url);
  client.send(message);
  return client;
}
const joined = async (roomId: string, instance = usual) => kit.enter(instance.url, roomId);

/** Provokes each close reason. Returns the instance that closes the connection. */
const PROVOKE: Record<CloseReason, () => Promise<TestInstance>> = {
  async left() {
    const { client } = await joined(await kit.newRoom());
    client.send({ type: 'leave' });
    return closes(client, 'left');
  },
  async removed() {
    const roomId = await kit.newRoom();
    const { client, participantId } = await joined(roomId);
    await kit.remove(roomId, participantId);
    return closes(client, 'removed');
  },
  async room_ended() {
    const roomId = await kit.newRoom();
    const { client } = await joined(roomId);
    await kit.end(roomId);
    return closes(client, 'room_ended');
  },
  async superseded() {
    const ada = await joined(await kit.newRoom());
    await kit.join(usual.url, ada);
    return closes(ada.client, 'superseded');
  },
  async token_expired() {
    const { token } = await kit.invite(await kit.newRoom(), { claims: { exp: 1 } });
    return closes(await send({ type: 'join', token }), 'token_expired');
  },
  async invalid_token() {
    return closes(await send({ type: 'join', token: 'nonsense' }), 'invalid_token');
  },
  async invalid_session() {
    const unknown = { sessionId: 'sess_01h455vb4pex5vsknk084sn02q', resumeSecret: 'x'.repeat(43) };
    return closes(await send({ type: 'resume', ...unknown }), 'invalid_session');
  },
  async capacity() {
    const roomId = await kit.newRoom({ maxParticipants: 1 });
    await joined(roomId);
    const { token } = await kit.invite(roomId);
    return closes(await send({ type: 'join', token }), 'capacity');
  },
  async media_unavailable() {
    const { token } = await kit.invite(await kit.newRoom());
    return closes(await send({ type: 'join', token, requireMedia: true }), 'media_unavailable');
  },
  async drain() {
    const draining = await kit.start();
    const { client } = await joined(await kit.newRoom(), draining);
    await draining.close();
    return closes(client, 'drain', draining);
  },
  async unavailable() {
    const { token } = await kit.invite(await kit.newRoom());
    // It has not loaded the keys yet, and cannot while their table has another name.
    const instance = await kit.start();
    const rename = (from: string, to: string) =>
      kit.database.prisma.$executeRawUnsafe(`ALTER TABLE ${from} RENAME TO ${to}`);
    await rename('signing_keys', 'signing_keys_away');
    try {
      return await closes(await send({ type: 'join', token }, instance), 'unavailable', instance);
    } finally {
      await rename('signing_keys_away', 'signing_keys');
    }
  },
  async protocol_error() {
    const client = await connectClient(usual.url);
    client.raw('hello');
    return closes(client, 'protocol_error');
  },
  async message_too_large() {
    const client = await connectClient(usual.url);
    client.raw('x'.repeat(PROTOCOL_LIMITS.firstFrameBytesMax + 1));
    return closes(client, 'message_too_large');
  },
  async rate_limited() {
    const { client } = await joined(await kit.newRoom());
    for (let n = 0; n < 2 * GENERAL_BURST; n++) client.send({ type: 'ping' });
    return closes(client, 'rate_limited');
  },
  async slow_consumer() {
    const roomId = await kit.newRoom();
    const [slow, sender] = [await joined(roomId), await joined(roomId)];
    slow.client.socket.pause();
    const { rooms, sessions } = usual.gateway;
    const { room } = sessions.get(sender.welcome.sessionId)!;
    const data = JSON.stringify('x'.repeat(60_000));
    const hasLeft = () => sessions.get(slow.welcome.sessionId)?.isConnected !== true;
    // At most 24 MB: more than the sockets of both sides buffer.
    for (let n = 0; n < 400 && !hasLeft(); n++) {
      await rooms.pass(room, sender.participantId, null, data, 'now');
      await new Promise(setImmediate);
    }
    expect(hasLeft()).toBe(true);
    slow.client.terminate();
    return usual;
  },
  async timeout() {
    const impatient = await kit.start({ pingIntervalSeconds: 1 });
    const { client } = await joined(await kit.newRoom(), impatient);
    // Its pings stay unanswered.
    client.socket.pause();
    await eventually(() => impatient.gateway.connections.count === 0);
    return impatient;
  },
  async too_many_attempts() {
    const strict = await kit.start({ arrivals: { failures: { perMinute: 1, burst: 1 } } });
    await closes(await send({ type: 'join', token: 'nonsense' }, strict), 'invalid_token', strict);
    return closes(await send({ type: 'join', token: 'nonsense' }, strict), 'too_many_attempts', strict);
  },
  async room_too_large() {
    const roomId = await kit.newRoom();
    const { client } = await joined(roomId);
    for (let n = 0; n < 2; n++) await kit.enter(usual.url, roomId, { protocol: 2 });
    return closes(client, 'room_too_large');
  },
};

async function closes(client: TestClient, reason: CloseReason, instance = usual): Promise<TestInstance> {
  await client.untilClosed(reason);
  return instance;
}

/** The causes in the log lines about closed connections, by close reason. */
function causesOf(instance: TestInstance): Map<string, unknown> {
  const lines = instance
    .log()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { message: string; reason?: string; cause?: unknown });
  // The line of a limit, whose rate is bounded, stands for the connections that it refuses.
  const ofLimit = lines.filter(({ message }) => message === 'arrival refused');
  const ofEnd = lines.filter(({ message }) => message === 'connection');
  return new Map([
    ...ofLimit.map(({ cause }) => ['too_many_attempts', cause] as const),
    ...ofEnd.map(({ reason, cause }) => [String(reason), cause] as const),
  ]);
}

test.each(Object.keys(CLOSE_REASONS) as CloseReason[])(
  'a connection that is closed as %s has its cause in the log',
  async (reason) => {
    const instance = await PROVOKE[reason]();
    await eventually(() => causesOf(instance).has(reason));
    expect(causesOf(instance).get(reason)).toEqual(expect.stringMatching(/\w{3}/));
  },
);
