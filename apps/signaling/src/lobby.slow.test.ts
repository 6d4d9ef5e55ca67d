import { beforeAll, describe, expect, test } from '@jest/globals';
import { admitParticipant } from '@callplane/db';
import { CLIENT_MESSAGES, type ClientMessages } from '@callplane/protocol';
import { JobProducer, publishRoomChanged, publishRoomMessage } from '@callplane/queue';
import {
  createRtcPeer,
  eventually,
  PATIENT_REDIS,
  startTestJanus,
  stopAtEnd,
  type TestJanus,
} from '@callplane/testing';
import { WebSocket } from 'ws';
import { CAM, flows, MIC, startCall } from './call.testkit.js';
import { connectClient } from './client.testkit.js';
import { codeOf, post } from './whip/whip.testkit.js';
import { resumptionOf, startTestSignaling, usesJanus, type Joined, type TestInstance } from './signaling.testkit.js';

let kit: Awaited<ReturnType<typeof startTestSignaling>>;
let janus: TestJanus;
let one: TestInstance;
let two: TestInstance;
let producer: JobProducer;
beforeAll(async () => {
  [kit, janus] = await Promise.all([startTestSignaling(), startTestJanus()]);
  const settings = { ...usesJanus(janus), RECONNECT_GRACE_SECONDS: '60' };
  [one, two] = await Promise.all([kit.start(settings), kit.start(settings)]);
  producer = new JobProducer(kit.redis.url, { onLost: () => undefined, onReady: () => undefined }, PATIENT_REDIS);
  stopAtEnd(() => producer.close());
});

const wait = (roomId: string, instance = one, options = {}) =>
  kit.enter(instance.url, roomId, { name: 'Mallory', waiting: true, ...options });

/** Acts like the API: the transaction and the notice. */
async function admit(roomId: string, { participantId }: Pick<Joined, 'participantId'>, notice = true): Promise<void> {
  const admitted = await admitParticipant(kit.database, kit.tenant, roomId, participantId, new Date());
  if (admitted.outcome !== 'updated') throw new Error(admitted.outcome);
  if (notice) await publishRoomChanged(producer.redis, roomId, admitted.version);
}
const untilIn = ({ client }: Pick<Joined, 'client'>) => client.until('welcome', ({ waiting }) => waiting !== true);

/** The sessions of Janus. A gateway opens one for each participant whose media it handles. */
async function janusSessions(): Promise<number> {
  const socket = new WebSocket(janus.adminUrl, 'janus-admin-protocol');
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const answer = new Promise<Buffer>((resolve) => socket.once('message', resolve));
  socket.send(JSON.stringify({ janus: 'list_sessions', transaction: 'test', admin_secret: janus.adminSecret }));
  const { sessions } = JSON.parse((await answer).toString()) as { sessions: number[] };
  socket.terminate();
  return sessions.length;
}

/** Everything that the protocol allows, valid as far as a hostile client can know. */
function attacks(participantId: string): { [T in keyof ClientMessages]: Omit<ClientMessages[T], 'type' | 'id'> } {
  const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n';
  const targets = ['publisher', 'subscriber'] as ('publisher' | 'subscriber')[];
  const tracks = [{ participantId, trackId: 'mic' }];
  return {
    join: { token: 'x.y.z' },
    test: { token: 'x.y.z' },
    resume: { sessionId: 'sess_1', resumeSecret: 'secret' },
    publish: { sdp, tracks: [{ trackId: 'mic', source: 'microphone', mid: '0' }] },
    unpublish: {},
    mute: { trackId: 'mic', muted: false },
    subscribe: { tracks },
    unsubscribe: { tracks },
    answer: { offerId: 1, sdp },
    candidate: { target: 'subscriber', candidate: null },
    resetMedia: { targets },
    restartIce: {},
    refreshVideo: { targets },
    message: { data: 'let me in' },
    ask: { to: [participantId], askId: 'a1', method: 'm', payload: null },
    reply: { to: 'server', askId: 'a1', payload: null },
    stream: { to: [participantId], streamId: 's1', method: 'files', payload: null },
    part: { to: [participantId], streamId: 's1', offset: 0, data: 'AAAA' },
    credit: { to: participantId, streamId: 's1', received: 0, limit: 1 },
    metadata: { metadata: { a: 1 } },
    roster: {},
    show: { participantIds: [participantId] },
    quality: { level: 'good' },
    iceServers: {},
    ping: {},
    leave: {},
  };
}

describe('a hostile client in the lobby', () => {
  test('neither sends nor gets anything, whatever it sends, and Janus is asked for nothing', async () => {
    const roomId = await kit.newRoom();
    const ada = startCall(kit, await kit.enter(one.url, roomId, { name: 'Ada' }));
    await ada.publish([MIC, CAM]);
    const bob = startCall(kit, await kit.enter(two.url, roomId, { name: 'Bob' }));
    await flows(bob.subscriber, 'video');
    const before = await janusSessions();

    const mallory = await wait(roomId);
    expect(mallory.welcome).toMatchObject({
      waiting: true,
      room: { id: roomId, name: expect.any(String), metadata: {} },
      participants: [],
      permissions: [],
      iceServers: [],
      roster: { participantCount: 2 },
    });
    const messages = attacks(ada.participantId);
    expect(Object.keys(messages)).toEqual(Object.keys(CLIENT_MESSAGES));
    const answers: Record<string, string> = {};
    for (const [type, fields] of Object.entries(messages)) {
      if (type === 'leave') continue;
      const answer = await mallory.client.request({ type, ...fields });
      answers[type] = answer.type === 'error' ? answer.code : answer.type;
    }
    const refused = Object.keys(messages).map((type) => [type, 'not_admitted']);
    const { leave: _, ...expected } = Object.fromEntries(refused) as Record<string, string>;
    expect(answers).toEqual({ ...expected, join: 'conflict', resume: 'conflict', test: 'conflict', ping: 'pong' });

    // The room goes its way meanwhile.
    await ada.client.ask({ type: 'message', data: 'to all' }, 'ok');
    await ada.client.ask({ type: 'metadata', metadata: { seat: 1 } }, 'ok');
    await bob.client.until('message', ({ data }) => data === 'to all');
    const direct = { type: 'message', data: 'to you', to: [mallory.participantId] };
    for (const { client } of [ada, bob]) expect(await client.ask(direct, 'error')).toMatchObject({ code: 'not_found' });
    const text = JSON.stringify({ type: 'message', from: 'server', data: 1, sentAt: new Date().toISOString() });
    for (const to of [null, [mallory.participantId]]) {
      await publishRoomMessage(producer.redis, roomId, 'server', { from: 'server', to, text });
    }
    await ada.client.until('message', ({ from }) => from === 'server');
    expect((await mallory.client.ask({ type: 'ping' }, 'pong')).type).toBe('pong');

    const got = JSON.stringify(mallory.client.messages);
    for (const { participantId, welcome } of [ada, bob]) {
      expect(got).not.toContain(participantId);
      expect(got).not.toContain(welcome.sessionId);
    }
    expect(new Set(mallory.client.messages.map(({ type }) => type))).toEqual(new Set(['welcome', 'error', 'pong']));
    for (const { client } of [ada, bob]) {
      // The refusals above name the participant that the client has named.
      const known = client.messages.filter(({ type }) => type !== 'error');
      expect(JSON.stringify(known)).not.toContain(mallory.participantId);
    }
    expect(await janusSessions()).toBe(before);
    const { sessionId: id } = mallory.welcome;
    const include = { tracks: true };
    const row = await kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id }, include });
    expect(row).toMatchObject({ waiting: true, media: null, tracks: [] });

    await kit.remove(roomId, mallory.participantId);
    await mallory.client.untilClosed('removed');
    expect(await kit.story(roomId, mallory.participantId)).toEqual(['waiting']);
    await Promise.all([ada.end(), bob.end()]);
  });
});

describe('an admission', () => {
  test('lets the client in within a second, at another gateway, with the permissions of its token', async () => {
    const roomId = await kit.newRoom();
    const ada = startCall(kit, await kit.enter(one.url, roomId));
    await ada.publish([CAM]);
    const bob = startCall(kit, await wait(roomId, two, { permissions: ['room:join', 'video:publish'] }));
    const startedAtMs = performance.now();
    await admit(roomId, bob);
    const welcome = await untilIn(bob);
    process.stderr.write(`    measured: admitted after ${Math.round(performance.now() - startedAtMs)} ms\n`);
    expect(welcome).toMatchObject({
      sessionId: bob.welcome.sessionId,
      resumeSecret: bob.welcome.resumeSecret,
      permissions: ['room:join', 'video:publish'],
      participants: [{ participantId: ada.participantId }],
      media: { state: 'up' },
    });
    expect(welcome).not.toHaveProperty('replyTo');
    await flows(bob.subscriber, 'video');
    await bob.publish([CAM]);
    await flows(ada.subscriber, 'video');
    expect(await bob.client.ask({ type: 'message', data: 1 }, 'error')).toMatchObject({ code: 'permission_denied' });
    expect(await kit.story(roomId, bob.participantId)).toEqual(['waiting', 'admitted', 'joined', 'published cam']);
    await Promise.all([ada.end(), bob.end()]);
  });

  test('survives a lost notice', async () => {
    const roomId = await kit.newRoom();
    const bob = await wait(roomId);
    await admit(roomId, bob, false);
    expect((await untilIn(bob)).roster).toMatchObject({ participantCount: 1 });
  });

  test('reaches the others as a join, and shows each of two admitted ones the other', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(two.url, roomId);
    const [bob, eve] = [await wait(roomId), await wait(roomId)];
    await Promise.all([admit(roomId, bob), admit(roomId, eve)]);
    await ada.client.untilOthers((others) => others.has(bob.participantId) && others.has(eve.participantId));
    for (const { client } of [bob, eve]) await client.untilOthers((others) => others.size === 2);
  });

  test('holds for later joins with the same token', async () => {
    const roomId = await kit.newRoom();
    const bob = await wait(roomId);
    await admit(roomId, bob);
    await untilIn(bob);
    const again = await kit.join(two.url, bob);
    expect(again.welcome).not.toHaveProperty('waiting');
    await bob.client.untilClosed('superseded');
  });
});

describe('a session in the lobby', () => {
  test('is resumed there, at this gateway or another one', async () => {
    const roomId = await kit.newRoom();
    const bob = await wait(roomId);
    bob.client.terminate();
    const here = await kit.resume(one.url, bob.welcome);
    expect(here).toMatchObject({ waiting: true, resumed: true, sessionId: bob.welcome.sessionId });
    const there = await kit.resume(two.url, bob.welcome);
    expect(there).toMatchObject({ waiting: true, resumed: true });
    await admit(roomId, bob);
    expect(await untilIn(there)).toMatchObject({ sessionId: bob.welcome.sessionId });
    await there.client.ask({ type: 'message', data: 1 }, 'ok');
  });

  test('that is admitted while its client is away is welcomed when it resumes', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(two.url, roomId);
    const bob = await wait(roomId);
    bob.client.terminate();
    await admit(roomId, bob);
    await ada.client.untilOthers((others) => others.has(bob.participantId));
    const resumed = await kit.resume(one.url, bob.welcome);
    expect(resumed).not.toHaveProperty('waiting');
    await resumed.client.ask({ type: 'message', data: 1 }, 'ok');
  });

  test('moves to another gateway when its own one drains', async () => {
    const roomId = await kit.newRoom();
    const third = await kit.start(usesJanus(janus));
    const bob = await wait(roomId, third);
    await Promise.all([third.close(), bob.client.untilClosed('drain')]);
    const resumed = await kit.resume(one.url, bob.welcome);
    expect(resumed).toMatchObject({ waiting: true, resumed: true });
    await admit(roomId, bob);
    await untilIn(resumed);
  });

  test('ends with its room, with a newer join and when its client leaves', async () => {
    const roomId = await kit.newRoom();
    const bob = await wait(roomId);
    const newer = await kit.join(two.url, bob);
    expect(newer.welcome.waiting).toBe(true);
    await bob.client.untilClosed('superseded');
    newer.client.send({ type: 'leave' });
    await newer.client.untilClosed('left');
    expect(await kit.story(roomId, bob.participantId)).toEqual(['waiting', 'left superseded', 'waiting', 'left left']);
    const eve = await wait(roomId);
    await kit.end(roomId);
    await eve.client.untilClosed('room_ended');
    const late = await connectClient(one.url);
    late.send(resumptionOf(eve.welcome));
    await late.untilClosed('room_ended');
  });

  test('is none for an encoder, which cannot wait: it is refused until its participant is admitted', async () => {
    const roomId = await kit.newRoom();
    const encoder = await kit.invite(roomId, { waiting: true });
    const peer = await createRtcPeer();
    peer.addVideo();
    const offer = await peer.offer();
    const refused = await post(one.url, encoder.token, offer);
    expect([refused.status, codeOf(refused)]).toEqual([403, 'PERMISSION_DENIED']);
    await admit(roomId, encoder);
    expect((await post(one.url, encoder.token, offer)).status).toBe(201);
    peer.close();
  });

  test('keeps no place in the room: a participant joins a room for one', async () => {
    const roomId = await kit.newRoom({ maxParticipants: 1 });
    await wait(roomId);
    await wait(roomId);
    const ada = await kit.enter(one.url, roomId);
    expect(ada.welcome.roster.participantCount).toBe(1);
    await eventually(async () => (await kit.events(roomId)).filter(({ type }) => type === 'room.started').length === 1);
  });
});
