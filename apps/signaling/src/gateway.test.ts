import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient } from './client.testkit.js';
import { startTestSignaling, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two] = await Promise.all([
    kit.start({ reconnectGraceSeconds: 1, turn: { turnUrls: ['turn:t:1'], secret: 'a-turn-secret' } }),
    kit.start({ reconnectGraceSeconds: 1 }),
  ]);
});
afterAll(() => kit.close());

const quiet = (ms = 150) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a join', () => {
  test('is welcomed with the room, the others and what is permitted; the others are told', async () => {
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
    expect(await ada.client.until('participantJoined')).toMatchObject({
      participant: { participantId: bob.participantId, name: 'Bob' },
    });
    bob.client.send({ type: 'leave' });
    await bob.client.untilClosed('left');
    expect(await ada.client.until('participantLeft')).toMatchObject({ participantId: bob.participantId });
    expect(await kit.story(roomId, bob.participantId)).toEqual(['joined', 'left left']);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
  });

  test('that is refused says why, and leaves nothing behind', async () => {
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

  test('supersedes the session of the same participant, on this instance or another', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const first = await kit.enter(one.url, roomId);
    const second = await kit.join(two.url, first);
    await first.client.untilClosed('superseded', 2000);
    const third = await kit.join(two.url, first);
    await second.client.untilClosed('superseded', 2000);
    expect(third.welcome.sessionId).not.toBe(first.welcome.sessionId);
    await bob.client.until('participantJoined', ({ participant }) => participant.sessionId === third.welcome.sessionId);
    const seen = bob.client.messages
      .filter(({ type }) => type === 'participantJoined' || type === 'participantLeft')
      .map(({ type }) => type.slice('participant'.length));
    expect(seen).toEqual(['Joined', 'Left', 'Joined', 'Left', 'Joined']);
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
  test('are seen at once on every instance; whoever was removed does not come back', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob, eve] = await Promise.all([
      kit.enter(one.url, roomId),
      kit.enter(two.url, roomId),
      kit.enter(one.url, roomId),
    ]);
    await kit.remove(roomId, eve.participantId);
    await eve.client.untilClosed('removed', 1000);
    await bob.client.until('participantLeft', ({ participantId }) => participantId === eve.participantId, 1000);
    const again = await connectClient(one.url);
    again.send({ type: 'join', token: eve.token });
    await again.untilClosed('removed');
    const resumed = await connectClient(two.url);
    resumed.send({ type: 'resume', sessionId: eve.welcome.sessionId, resumeSecret: eve.welcome.resumeSecret });
    await resumed.untilClosed('removed');
    // The clean-up waits for this.
    await eventually(async () => {
      const row = await kit.database.prisma.participantSession.findUnique({ where: { id: eve.welcome.sessionId } });
      return row?.instanceId === null;
    });
    await kit.end(roomId);
    await Promise.all([ada.client.untilClosed('room_ended', 1000), bob.client.untilClosed('room_ended', 1000)]);
    await eventually(async () => {
      const rows = await kit.database.prisma.participantSession.findMany({ where: { roomId } });
      return rows.every(({ instanceId }) => instanceId === null);
    });
  });

  test('are seen without any notice too', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = await Promise.all([kit.enter(one.url, roomId), kit.enter(two.url, roomId)]);
    await kit.remove(roomId, bob.participantId, false);
    await bob.client.untilClosed('removed', 7000);
    await ada.client.until('participantLeft', () => true, 7000);
  });
});

describe('messages', () => {
  test('reach the others on every instance, in order, or those who are named', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId);
    const [bob, eve] = [await kit.enter(two.url, roomId), await kit.enter(one.url, roomId)];
    await ada.client.until('participantJoined', ({ participant }) => participant.participantId === eve.participantId);
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

  test('and metadata need their permissions', async () => {
    const roomId = await kit.newRoom();
    const mute = await kit.enter(one.url, roomId, { permissions: ['room:join'] });
    const bob = await kit.enter(two.url, roomId);
    await mute.client.until('participantJoined');
    for (const message of [
      { type: 'message', data: 1 },
      { type: 'metadata', metadata: {} },
    ]) {
      expect(await mute.client.ask(message, 'error')).toMatchObject({ code: 'permission_denied' });
    }
    await bob.client.ask({ type: 'metadata', metadata: { hand: 'up' } }, 'ok');
    expect(await mute.client.until('participantUpdated')).toMatchObject({
      participant: { participantId: bob.participantId, metadata: { hand: 'up' } },
    });
    expect(await bob.client.ask({ type: 'metadata', metadata: { a: 'x'.repeat(17_000) } }, 'error')).toMatchObject({
      code: 'payload_too_large',
    });
    expect(bob.client.of('message')).toEqual([]);
  });
});

describe('small requests', () => {
  test('are answered', async () => {
    const { client, welcome } = await kit.enter(one.url, await kit.newRoom());
    await client.ask({ type: 'ping' }, 'pong');
    expect(await client.ask({ type: 'iceServers' }, 'iceServers')).toMatchObject({
      iceServers: [{ username: expect.stringContaining(welcome.sessionId) }],
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

  test('without a media server publishing is refused, and nothing else', async () => {
    const { client } = await kit.enter(one.url, await kit.newRoom());
    const sdp = 'v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n';
    expect(await client.ask({ type: 'publish', sdp, tracks: [] }, 'error')).toMatchObject({
      code: 'media_unavailable',
    });
    await client.ask({ type: 'ping' }, 'pong');
  });
});

describe('a lost connection', () => {
  test('is resumed on the same instance or another without leaving; others see it away meanwhile', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const ada = await kit.enter(one.url, roomId);
    await bob.client.until('participantJoined');
    ada.client.terminate();
    await bob.client.until('participantUpdated', ({ participant }) => !participant.connected, 2000);
    const here = await kit.resume(one.url, ada.welcome);
    expect(here).toMatchObject({
      resumed: true,
      sessionId: ada.welcome.sessionId,
      participants: [{ participantId: bob.participantId }],
    });
    await bob.client.until('participantUpdated', ({ participant }) => participant.connected, 2000);
    // While it still stands here, it is resumed there.
    const there = await kit.resume(two.url, ada.welcome);
    await here.client.untilClosed();
    expect(here.client.of('closing')).toEqual([]);
    await bob.client.ask({ type: 'message', data: 'hello' }, 'ok');
    await there.client.until('message', ({ data }) => data === 'hello');
    await quiet(1300);
    await there.client.ask({ type: 'ping' }, 'pong');
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
    expect(bob.client.of('participantLeft')).toEqual([]);
  });

  test('that nobody resumes has left when its grace is over, once', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const ada = await kit.enter(one.url, roomId);
    ada.client.terminate();
    await bob.client.until('participantLeft', () => true, 3000);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'left connection_lost']);
    const late = await connectClient(one.url);
    late.send({ type: 'resume', sessionId: ada.welcome.sessionId, resumeSecret: ada.welcome.resumeSecret });
    expect(await late.untilClosed('invalid_session')).toMatchObject({ reconnect: 'join' });
    // The token is still good.
    const again = await kit.join(one.url, ada);
    expect(again.welcome.resumed).toBe(false);
  });

  test('cannot be resumed with another secret, and that of one session opens no other', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await kit.enter(one.url, roomId), await kit.enter(one.url, roomId)];
    for (const resumeSecret of ['x', bob.welcome.resumeSecret]) {
      const thief = await connectClient(one.url);
      thief.send({ type: 'resume', sessionId: ada.welcome.sessionId, resumeSecret });
      await thief.untilClosed('invalid_session');
    }
    await ada.client.ask({ type: 'ping' }, 'pong');
    const stored = await kit.database.prisma.participantSession.findUniqueOrThrow({
      where: { id: ada.welcome.sessionId },
    });
    expect(JSON.stringify(stored)).not.toContain(ada.welcome.resumeSecret);
  });

  test('resumed several times at once belongs to the last', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId);
    const attempts = await Promise.allSettled(
      Array.from({ length: 6 }, (_, n) => kit.resume(n % 2 === 0 ? one.url : two.url, ada.welcome)),
    );
    await quiet(500);
    const open = attempts.filter((attempt) => attempt.status === 'fulfilled' && attempt.value.client.closed === null);
    expect(open).toHaveLength(1);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
  });
});

describe('draining', () => {
  test('sends clients elsewhere; nobody leaves, and the process knows no session any more', async () => {
    const old = await kit.start();
    const roomId = await kit.newRoom();
    const bob = await kit.enter(two.url, roomId);
    const all = await Promise.all(Array.from({ length: 5 }, () => kit.enter(old.url, roomId)));
    const moved = all.map(async ({ client, welcome }) => {
      const closing = await client.untilClosed('drain');
      expect(closing).toMatchObject({ reconnect: 'resume' });
      return kit.resume(two.url, welcome);
    });
    await old.close();
    for (const { resumed, participants } of await Promise.all(moved)) {
      expect(resumed).toBe(true);
      expect(participants).toHaveLength(5);
    }
    await expect(connectClient(old.url)).rejects.toThrow();
    expect(bob.client.of('participantLeft')).toEqual([]);
    expect(bob.client.of('participantJoined')).toHaveLength(5);
    expect(old.gateway.sessions.count).toBe(0);
    expect(await kit.database.prisma.signalingInstance.findUnique({ where: { id: old.deps.instanceId } })).toBeNull();
  });
});

test('no token and no secret is logged', async () => {
  const roomId = await kit.newRoom();
  const ada = await kit.enter(one.url, roomId);
  const again = await kit.resume(one.url, ada.welcome);
  again.client.send({ type: 'leave' });
  await again.client.untilClosed('left');
  await eventually(() => one.log().includes('"message":"connection"'));
  for (const secret of [ada.token, ada.welcome.resumeSecret, ada.token.split('.')[2]!]) {
    expect(one.log()).not.toContain(secret);
  }
});
