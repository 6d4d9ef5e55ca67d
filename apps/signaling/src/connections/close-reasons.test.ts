import { beforeAll, expect, test } from '@jest/globals';
import { CLOSE_REASONS, PROTOCOL_LIMITS, type CloseReason } from '@callplane/protocol';
import { publishNotice } from '@callplane/queue';
import { execute, connectToTestRedis, eventually } from '@callplane/testing';
import { connectClient, type TestClient } from '../client.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

const GENERAL_BURST = 50;

let kit: TestSignaling;
let usual: TestInstance;
/** Pings often, and allows one failed arrival. */
let impatient: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [usual, impatient] = await Promise.all([
    kit.start({
      ROSTER_FULL_MAX: '2',
      RATE_LIMIT_SIGNALING_PER_SECOND: '1',
      RATE_LIMIT_SIGNALING_BURST: String(GENERAL_BURST),
    }),
    kit.start({
      PING_INTERVAL_SECONDS: '1',
      RATE_LIMIT_FAILED_ARRIVALS_PER_MINUTE: '1',
      RATE_LIMIT_FAILED_ARRIVALS_BURST: '1',
    }),
  ]);
});

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
  async moved() {
    const roomId = await kit.newRoom();
    const { client, participantId } = await joined(roomId);
    await kit.move(roomId, participantId, await kit.newRoom());
    return closes(client, 'moved');
  },
  async token_expired() {
    const { token } = await kit.invite(await kit.newRoom(), { claims: { exp: 1 } });
    return closes(await send({ type: 'join', token }), 'token_expired');
  },
  async invalid_token() {
    return closes(await send({ type: 'join', token: 'nonsense' }), 'invalid_token');
  },
  async invalid_session() {
    const unknown = { roomId: 'room_x', sessionId: 'sess_01h455vb4pex5vsknk084sn02q', resumeSecret: 'x'.repeat(43) };
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
    const { client } = await joined(await kit.newRoom(), impatient);
    impatient.app.kill('SIGTERM');
    return closes(client, 'drain', impatient);
  },
  async unavailable() {
    const { token } = await kit.invite(await kit.newRoom());
    const rename = (from: string, to: string) => execute(kit.database, `ALTER TABLE ${from} RENAME TO ${to}`);
    await rename('signing_keys', 'signing_keys_away');
    try {
      // The gateway reads the keys again after the notice, and cannot while their table has another name.
      await publishNotice(await connectToTestRedis(kit.redis.url), 'signingKeysChanged', '');
      return await eventually(async () => closes(await send({ type: 'join', token }), 'unavailable'));
    } finally {
      await rename('signing_keys_away', 'signing_keys');
    }
  },
  async protocol_error() {
    const client = await connectClient(usual.url);
    client.raw(Buffer.from('{"type":"join"}'));
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
    const patient = await kit.start();
    const [slow, sender] = [await joined(roomId, patient), await joined(roomId, patient)];
    slow.client.socket.pause();
    // At most 24 MB: more than the sockets of both sides buffer.
    for (let n = 0; n < 1500 && !patient.log().includes('slow_consumer'); n++) {
      await sender.client.request({ type: 'message', data: 'x'.repeat(16_000) });
    }
    await eventually(() => causesOf(patient).has('slow_consumer'));
    slow.client.terminate();
    return patient;
  },
  async timeout() {
    const roomId = await kit.newRoom();
    const [silent, alive] = [await joined(roomId, impatient), await joined(roomId, impatient)];
    // Its pings stay unanswered.
    silent.client.socket.pause();
    await eventually(async () => (await impatient.valueOf('callplane_signaling_connections{')) === 1);
    await alive.client.ask({ type: 'ping' }, 'pong');
    alive.client.terminate();
    return impatient;
  },
  async too_many_attempts() {
    await closes(await send({ type: 'join', token: 'nonsense' }, impatient), 'invalid_token', impatient);
    return closes(await send({ type: 'join', token: 'nonsense' }, impatient), 'too_many_attempts', impatient);
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

// The drain ends a gateway, so it comes last.
test.each([...(Object.keys(CLOSE_REASONS) as CloseReason[]).filter((reason) => reason !== 'drain'), 'drain' as const])(
  'a connection that is closed as %s has its cause in the log',
  async (reason) => {
    const instance = await PROVOKE[reason]();
    await eventually(() => causesOf(instance).has(reason));
    expect(causesOf(instance).get(reason)).toEqual(expect.stringMatching(/\w{3}/));
  },
);
