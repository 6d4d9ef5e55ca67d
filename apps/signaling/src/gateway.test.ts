import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient } from './client.testkit.js';
import {
  resumptionOf,
  startTestSignaling,
  type Joined,
  type TestInstance,
  type TestSignaling,
} from './signaling.testkit.js';

const GRACE_MS = 4000;
const SETTINGS = { RECONNECT_GRACE_SECONDS: String(GRACE_MS / 1000) };
/** How often a gateway reads its rooms, in case Redis has lost a notice. */
const RESYNC_EVERY_MS = 5000;

let kit: TestSignaling;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two] = await Promise.all([
    kit.start({ ...SETTINGS, TURN_URLS: 'turn:t:1', TURN_SECRET: 'a-turn-secret' }),
    kit.start(SETTINGS),
  ]);
});

const quiet = (ms = 150) => new Promise((resolve) => setTimeout(resolve, ms));

test('a recording of the room is told at all gateways, to later joins and to resumptions', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob] = [await kit.enter(one.url, roomId), await kit.enter(two.url, roomId)];
  expect(ada.welcome.room['recordingSince']).toBeNull();
  await kit.record(roomId);
  const isRecorded = ({ room }: { room: Record<string, unknown> }) => room['recordingSince'] !== null;
  const [first, second] = await Promise.all([ada, bob].map(({ client }) => client.until('roomUpdated', isRecorded)));
  const since = first!.room['recordingSince'];
  expect(second!.room['recordingSince']).toBe(since);
  const late = await kit.enter(one.url, roomId);
  ada.client.terminate();
  const resumed = await kit.resume(two.url, ada.welcome);
  expect([late.welcome, resumed].map(({ room }) => room['recordingSince'])).toEqual([since, since]);
  await kit.stopRecordings(roomId);
  const isOver = ({ room }: { room: Record<string, unknown> }) => room['recordingSince'] === null;
  await Promise.all([bob, late, resumed].map(({ client }) => client.until('roomUpdated', isOver)));
});

test('the first participant of a room with the option starts its recording, without an API', async () => {
  const roomId = await kit.newRoom({ record: { mode: 'tracks' } });
  const [ada, bob] = await Promise.all([kit.enter(one.url, roomId), kit.enter(two.url, roomId)]);
  const { startedAt } = await kit.database.prisma.recording.findFirstOrThrow({ where: { roomId } });
  for (const { welcome } of [ada, bob]) expect(welcome.room['recordingSince']).toBe(startedAt.toISOString());
  const types = (await kit.events(roomId)).map(({ type }) => type);
  expect(types.filter((type) => type === 'recording.started')).toHaveLength(1);
});

describe('a join', () => {
  test('is answered with the room, the others and the permissions, and announced to the others', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId, { permissions: ['room:join', 'messages:send'], metadata: { a: 1 } });
    expect(ada.welcome).toMatchObject({
      resumed: false,
      room: { id: roomId, status: 'active' },
      participant: { participantId: ada.participantId, name: 'Ada', metadata: { a: 1 }, connected: true, tracks: [] },
      participants: [],
      permissions: ['room:join', 'messages:send'],
      media: { state: 'down', continued: false },
      iceServers: [{ urls: ['turn:t:1'], username: expect.stringMatching(`^\\d+:${ada.welcome.sessionId}$`) }],
    });
    const bob = await kit.enter(two.url, roomId, { name: 'Bob' });
    expect(bob.welcome.participants).toMatchObject([{ participantId: ada.participantId }]);
    await ada.client.untilOthers((others) => others.get(bob.participantId)?.name === 'Bob');
    bob.client.send({ type: 'leave' });
    await bob.client.untilClosed('left');
    await ada.client.untilOthers((others) => others.size === 0);
    expect(await kit.story(roomId, bob.participantId)).toEqual(['joined', 'left left']);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
  });

  test('that is refused is closed with the reason and leaves nothing behind', async () => {
    const roomId = await kit.newRoom({ maxParticipants: 1 });
    const refused = async (token: string, more = {}) => {
      const client = await connectClient(one.url);
      client.send({ type: 'join', token, ...more });
      const closing = await client.untilClosed();
      return `${closing!.reason} ${closing!.reconnect}`;
    };
    const removed = await kit.invite(roomId);
    await kit.remove(roomId, removed.participantId);
    expect(await refused(removed.token)).toBe('removed no');
    expect(await refused('nonsense')).toBe('invalid_token no');
    expect(await refused((await kit.invite(roomId, { claims: { exp: 1000, nbf: 0 } })).token)).toBe('token_expired no');
    expect(await refused((await kit.invite(roomId, { claims: { roomId: 'room_x' } })).token)).toBe('invalid_token no');
    expect(await refused((await kit.invite(roomId, { claims: { environmentId: 'env_x' } })).token)).toBe(
      'invalid_token no',
    );
    expect(await refused((await kit.invite(roomId)).token, { requireMedia: true })).toBe('media_unavailable join');
    const revoked = await kit.invite(roomId);
    await kit.database.prisma.participantToken.update({
      where: { id: revoked.tokenId },
      data: { revokedAt: new Date() },
    });
    expect(await refused(revoked.token)).toBe('invalid_token no');
    const ada = await kit.enter(one.url, roomId);
    expect(await refused((await kit.invite(roomId)).token)).toBe('capacity join');
    const late = await kit.invite(roomId);
    await kit.end(roomId);
    await ada.client.untilClosed('room_ended');
    expect(await refused(late.token)).toBe('room_ended no');
    expect((await kit.events(roomId)).filter(({ type }) => type === 'participant.joined')).toHaveLength(1);
  });

  test('supersedes the previous session of the participant, on the same instance or another', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    // Otherwise Bob might get two changes at once, without the session between them.
    const seenByBob = ({ welcome }: Joined) =>
      bob.client.untilOthers((others) => [...others.values()].some(({ sessionId }) => sessionId === welcome.sessionId));
    const first = await kit.enter(one.url, roomId);
    await seenByBob(first);
    const second = await kit.join(two.url, first);
    await first.client.untilClosed('superseded');
    await seenByBob(second);
    const third = await kit.join(two.url, first);
    await second.client.untilClosed('superseded');
    expect(third.welcome.sessionId).not.toBe(first.welcome.sessionId);
    await seenByBob(third);
    const seen = bob.client.changes.map(({ kind }) => kind);
    expect(seen).toEqual(['participant', 'left', 'participant', 'left', 'participant']);
    expect(await kit.story(roomId, first.participantId)).toEqual([
      'joined',
      'left superseded',
      'joined',
      'left superseded',
      'joined',
    ]);
  });
});

describe('a removal and the end of a room', () => {
  test('take effect at once on every instance, and a removed participant cannot come back', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob, eve] = await Promise.all([
      kit.enter(one.url, roomId),
      kit.enter(two.url, roomId),
      kit.enter(one.url, roomId),
    ]);
    // Bob must have seen Eve, or the gateway has no departure to report to him.
    await bob.client.untilOthers((others) => others.size === 2);
    await kit.remove(roomId, eve.participantId);
    await eve.client.untilClosed('removed');
    await bob.client.untilOthers((others) => !others.has(eve.participantId));
    const again = await connectClient(one.url);
    again.send({ type: 'join', token: eve.token });
    await again.untilClosed('removed');
    const resumed = await connectClient(two.url);
    resumed.send(resumptionOf(eve.welcome));
    await resumed.untilClosed('removed');
    // The clean-up waits until the instance has released the session.
    await eventually(async () => {
      const row = await kit.database.prisma.participantSession.findUnique({ where: { id: eve.welcome.sessionId } });
      return row?.instanceId === null;
    });
    await kit.end(roomId);
    await Promise.all([ada.client.untilClosed('room_ended'), bob.client.untilClosed('room_ended')]);
    await eventually(async () => {
      const rows = await kit.database.prisma.participantSession.findMany({ where: { roomId } });
      return rows.every(({ instanceId }) => instanceId === null);
    });
  });

  test('take effect by the next resync if the notice is lost', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId);
    const bob = await kit.enter(two.url, roomId);
    // Ada must have seen Bob, or the gateway has no departure to report to her.
    await ada.client.untilOthers((others) => others.has(bob.participantId));
    await kit.remove(roomId, bob.participantId, false);
    await bob.client.untilClosed('removed');
    await ada.client.untilOthers((others) => others.size === 0);
  });
});

test('changes reach other instances without a resync', async () => {
  const roomId = await kit.newRoom();
  const ada = await kit.enter(one.url, roomId);
  const bob = await kit.enter(two.url, roomId);
  const startedAtMs = performance.now();
  const changes = 20;
  for (let at = 0; at < changes; at++) {
    await bob.client.ask({ type: 'metadata', metadata: { at } }, 'ok');
    await ada.client.untilOthers((others) => others.get(bob.participantId)?.metadata['at'] === at);
  }
  // Each change follows the arrival of the one before, so without notices each would wait for a resync.
  expect(performance.now() - startedAtMs).toBeLessThan((changes / 2) * RESYNC_EVERY_MS);
});

describe('messages', () => {
  test('reach all others on every instance in order, or only the recipients in `to`', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId);
    const [bob, eve] = [await kit.enter(two.url, roomId), await kit.enter(one.url, roomId)];
    await ada.client.untilOthers((others) => others.has(eve.participantId));
    for (let n = 0; n < 20; n++) ada.client.send({ type: 'message', data: { n } });
    await ada.client.ask({ type: 'message', data: 'for Bob', to: [bob.participantId] }, 'ok');
    await bob.client.until('message', ({ data }) => data === 'for Bob');
    await eve.client.until('message', ({ data }) => (data as any).n === 19);
    const numbers = (client: typeof bob.client) => client.of('message').map(({ data }) => (data as any).n ?? data);
    expect(numbers(bob.client)).toEqual([...Array(20).keys(), 'for Bob']);
    expect(numbers(eve.client)).toEqual([...Array(20).keys()]);
    expect(bob.client.of('message')[0]).toMatchObject({ from: ada.participantId, sentAt: expect.stringMatching(/Z$/) });
    expect(ada.client.of('message')).toEqual([]);
    expect(await ada.client.ask({ type: 'message', data: 1, to: ['part_x'] }, 'error')).toMatchObject({
      code: 'not_found',
    });
    expect(await ada.client.ask({ type: 'message', data: 'x'.repeat(17_000) }, 'error')).toMatchObject({
      code: 'payload_too_large',
    });
  });

  test('and metadata changes need their permissions', async () => {
    const roomId = await kit.newRoom();
    const mute = await kit.enter(one.url, roomId, { permissions: ['room:join'] });
    const bob = await kit.enter(two.url, roomId);
    await mute.client.untilOthers((others) => others.has(bob.participantId));
    for (const message of [
      { type: 'message', data: 1 },
      { type: 'metadata', metadata: {} },
    ]) {
      expect(await mute.client.ask(message, 'error')).toMatchObject({ code: 'permission_denied' });
    }
    await bob.client.ask({ type: 'metadata', metadata: { hand: 'up' } }, 'ok');
    await mute.client.untilOthers((others) => others.get(bob.participantId)?.metadata['hand'] === 'up');
    expect(await bob.client.ask({ type: 'metadata', metadata: { a: 'x'.repeat(17_000) } }, 'error')).toMatchObject({
      code: 'payload_too_large',
    });
    expect(bob.client.of('message')).toEqual([]);
  });
});

describe('requests', () => {
  test('are answered with their result or an error', async () => {
    const { client, welcome } = await kit.enter(one.url, await kit.newRoom());
    await client.ask({ type: 'ping' }, 'pong');
    expect(await client.ask({ type: 'iceServers' }, 'iceServers')).toMatchObject({
      iceServers: [{ username: expect.stringMatching(`^\\d+:${welcome.sessionId}$`) }],
    });
    expect(await client.ask({ type: 'iceServers', target: 'publisher' }, 'iceServers')).toMatchObject({
      iceServers: [{ username: expect.stringMatching(`^\\d+:${welcome.sessionId}:publisher$`) }],
      iceServersTtlSeconds: expect.any(Number),
    });
    expect(await client.ask({ type: 'join', token: 'x' }, 'error')).toMatchObject({ code: 'conflict' });
    expect(await client.ask({ type: 'mute', trackId: 'x', muted: true }, 'error')).toMatchObject({ code: 'not_found' });
    expect(await client.ask({ type: 'publish', sdp: 'v=0', tracks: [] }, 'error')).toMatchObject({
      code: 'invalid_sdp',
    });
    expect(
      await client.ask({ type: 'subscribe', tracks: [{ participantId: 'p', trackId: 't' }] }, 'error'),
    ).toMatchObject({ code: 'not_found' });
    expect(await client.ask({ type: 'answer', offerId: 1, sdp: 'v=0' }, 'error')).toMatchObject({ code: 'conflict' });
  });
});

describe('a test of the line', () => {
  const send = async (token: string) => {
    const client = await connectClient(one.url);
    client.send({ type: 'test', id: '1', token });
    return client;
  };

  test('is answered with ICE servers that last a minute, and nobody joins or leaves', async () => {
    const roomId = await kit.newRoom({ maxParticipants: 1 });
    const ada = await kit.enter(two.url, roomId);
    for (const { token } of [ada, await kit.invite(roomId)]) {
      const client = await send(token);
      await client.untilClosed('left');
      expect(client.of('iceServers')).toMatchObject([
        {
          replyTo: '1',
          iceServers: [{ urls: ['turn:t:1'], username: expect.stringMatching(`^\\d+:env_[^:]+:[0-9a-f]{16}$`) }],
          iceServersTtlSeconds: 60,
        },
      ]);
    }
    await ada.client.ask({ type: 'ping' }, 'pong');
    expect(await ada.client.ask({ type: 'test', token: ada.token }, 'error')).toMatchObject({ code: 'conflict' });
    expect((await kit.events(roomId)).filter(({ type }) => type.startsWith('participant.'))).toHaveLength(1);
  });

  test('is refused with a token that cannot join', async () => {
    const roomId = await kit.newRoom();
    const reasonFor = async (token: string) => (await (await send(token)).untilClosed())!.reason;
    const [removed, revoked] = [await kit.invite(roomId), await kit.invite(roomId)];
    await kit.remove(roomId, removed.participantId);
    await kit.database.prisma.participantToken.updateMany({
      where: { participantId: revoked.participantId },
      data: { revokedAt: new Date() },
    });
    expect(await reasonFor(removed.token)).toBe('removed');
    expect(await reasonFor(revoked.token)).toBe('invalid_token');
    expect(await reasonFor('nonsense')).toBe('invalid_token');
    expect(await reasonFor((await kit.invite(roomId, { claims: { roomId: 'room_x' } })).token)).toBe('invalid_token');
    const ended = await kit.newRoom();
    const late = await kit.invite(ended);
    await kit.end(ended);
    expect(await reasonFor(late.token)).toBe('room_ended');
  });
});

describe('a lost connection', () => {
  test('is resumed on the same or another instance without a departure, and shown as disconnected meanwhile', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const ada = await kit.enter(one.url, roomId);
    await bob.client.untilOthers((others) => others.has(ada.participantId));
    ada.client.terminate();
    await bob.client.untilOthers((others) => others.get(ada.participantId)?.connected === false);
    const here = await kit.resume(one.url, ada.welcome);
    expect(here).toMatchObject({
      resumed: true,
      sessionId: ada.welcome.sessionId,
      participants: [{ participantId: bob.participantId }],
    });
    await bob.client.untilOthers((others) => others.get(ada.participantId)?.connected === true);
    // Resumes on the second instance while the connection to the first one is still open.
    const there = await kit.resume(two.url, ada.welcome);
    await here.client.untilClosed();
    expect(here.client.of('closing')).toEqual([]);
    await bob.client.ask({ type: 'message', data: 'hello' }, 'ok');
    await there.client.until('message', ({ data }) => data === 'hello');
    await quiet(GRACE_MS + 300);
    await there.client.ask({ type: 'ping' }, 'pong');
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
    expect(bob.client.changes.filter(({ kind }) => kind === 'left')).toEqual([]);
  });

  test('that is not resumed ends its session exactly once, after the grace period', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const ada = await kit.enter(one.url, roomId);
    // Bob must have seen Ada, or the gateway has no departure to report to him.
    await bob.client.untilOthers((others) => others.has(ada.participantId));
    ada.client.terminate();
    await bob.client.untilOthers((others) => others.size === 0);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'left connection_lost']);
    const late = await connectClient(one.url);
    late.send(resumptionOf(ada.welcome));
    expect(await late.untilClosed('invalid_session')).toMatchObject({ reconnect: 'join' });
    // The token is still valid.
    const again = await kit.join(one.url, ada);
    expect(again.welcome.resumed).toBe(false);
  });

  test('that is resumed several times at once keeps exactly one of the new connections', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId);
    const attempts = await Promise.allSettled(
      Array.from({ length: 6 }, (_, n) => kit.resume(n % 2 === 0 ? one.url : two.url, ada.welcome)),
    );
    const open = () =>
      attempts.filter((attempt) => attempt.status === 'fulfilled' && attempt.value.client.closed === null);
    await eventually(() => open().length === 1);
    await quiet();
    expect(open()).toHaveLength(1);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
  });
});

describe('a row that another transaction has locked', () => {
  const waiting = async (statements: number) => {
    const [row] = await kit.database.sql.$queryRaw<{ count: number }[]>`
      SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return row?.count === statements;
  };

  test('leaves nothing of a join behind that its client gives up meanwhile', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(one.url, await kit.newRoom());
    const { token, participantId } = await kit.invite(roomId);
    const client = await connectClient(one.url);
    await kit.database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM participants WHERE id = ${participantId} FOR UPDATE`;
      client.send({ type: 'join', token });
      await eventually(() => waiting(1));
      client.send({ type: 'leave' });
      await bob.client.ask({ type: 'ping' }, 'pong');
    });
    await client.untilClosed('left');
    expect(await kit.events(roomId)).toEqual([]);
  });

  test('delays lost connections and resumptions of no other room than its own', async () => {
    const instance = await kit.start();
    const [slow, other] = [await kit.newRoom(), await kit.newRoom()];
    const [ada, bob] = [await kit.enter(instance.url, slow), await kit.enter(instance.url, slow)];
    const [cem, dia] = [await kit.enter(instance.url, other), await kit.enter(instance.url, other)];
    let resuming: ReturnType<TestSignaling['resume']> | undefined;
    await kit.database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM rooms WHERE id = ${slow} FOR UPDATE`;
      ada.client.terminate();
      resuming = kit.resume(instance.url, bob.welcome);
      await eventually(() => waiting(2));
      cem.client.terminate();
      await dia.client.untilOthers((others) => others.get(cem.participantId)?.connected === false);
      expect(await kit.resume(instance.url, cem.welcome)).toMatchObject({ resumed: true });
    });
    expect(await resuming).toMatchObject({ resumed: true });
    const disconnected = () =>
      kit.database.prisma.participantSession.count({ where: { roomId: slow, disconnectedAt: { not: null } } });
    await eventually(async () => (await disconnected()) === 1);
  });
});

test('logs no token and no resume secret, and stores no secret', async () => {
  const roomId = await kit.newRoom();
  const ada = await kit.enter(one.url, roomId);
  const again = await kit.resume(one.url, ada.welcome);
  again.client.send({ type: 'leave' });
  await again.client.untilClosed('left');
  await eventually(() => one.log().includes('"message":"connection"'));
  for (const secret of [ada.token, ada.welcome.resumeSecret, ada.token.split('.')[2]!]) {
    expect(one.log()).not.toContain(secret);
  }
  const stored = await kit.database.prisma.participantSession.findMany({ where: { roomId } });
  expect(JSON.stringify(stored)).not.toContain(ada.welcome.resumeSecret);
});

// It ends a gateway, so it comes last.
describe('draining', () => {
  test('sends clients to another instance without a departure, and leaves no session behind', async () => {
    const old = two;
    const roomId = await kit.newRoom();
    const bob = await kit.enter(one.url, roomId);
    const all = await Promise.all(Array.from({ length: 5 }, () => kit.enter(old.url, roomId)));
    const sessions = kit.database.prisma.participantSession;
    const { instanceId } = await sessions.findUniqueOrThrow({ where: { id: all[0]!.welcome.sessionId } });
    const moved = all.map(async ({ client, welcome }) => {
      const closing = await client.untilClosed('drain');
      expect(closing).toMatchObject({ reconnect: 'resume' });
      return kit.resume(one.url, welcome);
    });
    await old.close();
    expect(await old.app.exited).toEqual({ code: 0, signal: null });
    for (const { resumed, participants } of await Promise.all(moved)) {
      expect(resumed).toBe(true);
      expect(participants).toHaveLength(5);
    }
    await expect(connectClient(old.url)).rejects.toThrow();
    await bob.client.untilOthers((others) => others.size === 5);
    expect(bob.client.changes.filter(({ kind }) => kind === 'left')).toEqual([]);
    expect(await sessions.count({ where: { instanceId, roomId } })).toBe(0);
    expect(await kit.database.prisma.signalingInstance.findUnique({ where: { id: instanceId! } })).toBeNull();
  });
});
