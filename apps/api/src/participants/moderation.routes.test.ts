import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '@callplane/core';
import { publishTracks } from '@callplane/db';
import { RoomBus } from '@callplane/queue';
import { endOne, eventually, stopAtEnd, workerServers } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
let bus: RoomBus;
let room: string;
beforeAll(async () => {
  api = await startTestApi();
  bus = new RoomBus({
    redisUrl: (await workerServers()).redis.url,
    instanceId: 'gateway',
    publisher: api.redis,
    events: { onLost: () => undefined, onReady: () => undefined },
  });
  stopAtEnd(() => bus.close());
});
beforeEach(async () => {
  room = await api.room();
});

interface Entered {
  participantId: string;
  sessionId: string;
  path: string;
}

/** Issues a token and joins as a gateway does, with a microphone and a camera. */
async function enter(): Promise<Entered> {
  const invited = await api.invite(room, { participantName: 'Ada', permissions: [...PERMISSIONS] });
  const joined = await api.join(room, invited, new Date(), PERMISSIONS);
  const tracks = [
    { trackId: 'mic', kind: 'audio' as const, source: 'microphone' as const, muted: false, feedId: 'f', mid: '0' },
    { trackId: 'cam', kind: 'video' as const, source: 'camera' as const, muted: false, feedId: 'f', mid: '1' },
  ];
  await publishTracks(api.database, joined, tracks, new Date());
  const { sessionId } = joined;
  const { participantId } = invited;
  return { participantId, sessionId, path: `/v1/rooms/${room}/participants/${participantId}` };
}

/** Collects the notices and messages that gateways get of the room. */
async function listen(): Promise<{ notices: (number | null)[]; messages: unknown[] }> {
  const heard = { notices: [] as (number | null)[], messages: [] as unknown[] };
  bus.subscribe(room, {
    changed: (notice) => heard.notices.push(notice),
    message: (message) => heard.messages.push(message),
  });
  // A notice that is published before the subscription is lost.
  await eventually(async () => {
    const [, count] = await api.redis.pubsub('NUMSUB', `callplane:room:${room}`);
    return Number(count) > 0;
  });
  return heard;
}

const eventsOf = async (type: string) =>
  (await api.call('GET', `/v1/events?roomId=${room}&type=${type}`)).body.data.map(({ data }: { data: object }) => data);

describe('PATCH /v1/rooms/{roomId}/participants/{participantId}', () => {
  test('changes name, metadata and permissions, notifies the gateways with the version, and writes the events', async () => {
    const { path, participantId, sessionId } = await enter();
    const { notices } = await listen();
    const body = { name: '  Ada Lovelace ', metadata: { seat: 1 }, permissions: ['video:publish', 'room:join'] };
    const response = await api.call('PATCH', path, { body });
    expect([response.status, response.body]).toEqual([
      200,
      expect.objectContaining({
        id: participantId,
        name: 'Ada Lovelace',
        metadata: { seat: 1 },
        permissions: ['room:join', 'video:publish'],
      }),
    ]);
    const { version } = await api.database.prisma.room.findUniqueOrThrow({ where: { id: room } });
    await eventually(() => notices.includes(version));
    expect((await api.call('GET', path)).body).toMatchObject({ name: 'Ada Lovelace', metadata: { seat: 1 } });
    expect(await eventsOf('track.unpublished')).toMatchObject([{ track: { trackId: 'mic' }, sessionId }]);
    expect(await eventsOf('participant.updated')).toMatchObject([
      { sessionId, permissions: ['room:join', 'video:publish'], participant: { name: 'Ada Lovelace' } },
    ]);
  });

  test('sends no notice and writes no event if nothing changes', async () => {
    const { path } = await enter();
    const { notices } = await listen();
    const same = await api.call('PATCH', path, { body: { name: 'Ada', permissions: [...PERMISSIONS] } });
    expect([same.status, same.body.permissions]).toEqual([200, [...PERMISSIONS]]);
    expect((await api.call('PATCH', path, { body: {} })).status).toBe(200);
    expect(await eventsOf('participant.updated')).toEqual([]);
    // A change whose notice comes after the ones that must not come.
    await api.call('PATCH', path, { body: { name: 'Bea' } });
    await eventually(() => notices.length > 0);
    expect(notices).toHaveLength(1);
  });

  test('rejects metadata beyond 16 KiB, unknown ids, ended rooms and removed participants', async () => {
    const { path } = await enter();
    const answer = async (url: string, body: object) => {
      const { status, body: answered } = await api.call('PATCH', url, { body });
      return [status, answered.error.code];
    };
    expect(await answer(path, { metadata: { a: 'x'.repeat(16 * 1024) } })).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(await answer(`/v1/rooms/${room}/participants/part_0`, {})).toEqual([404, 'PARTICIPANT_NOT_FOUND']);
    expect(await answer('/v1/rooms/room_0/participants/part_0', {})).toEqual([404, 'ROOM_NOT_FOUND']);
    await api.call('DELETE', path);
    expect(await answer(path, { name: 'X' })).toEqual([409, 'PARTICIPANT_REMOVED']);
    await api.call('DELETE', `/v1/rooms/${room}`);
    expect(await answer(path, { name: 'X' })).toEqual([409, 'ROOM_ENDED']);
  });
});

test('gateways hear at once that a participant is removed, and that the room ends', async () => {
  const { path } = await enter();
  const { notices } = await listen();
  await api.call('DELETE', path);
  await eventually(() => notices.length === 1);
  // A repeated request publishes no second notice.
  await api.call('DELETE', path);
  await api.call('DELETE', `/v1/rooms/${room}`);
  await eventually(() => notices.length === 2);
});

describe('POST …/admit', () => {
  const waitIn = async (body: object) => {
    const invited = await api.invite(room, { participantName: 'Ada', ...body });
    await api.join(room, invited, new Date());
    return `/v1/rooms/${room}/participants/${invited.participantId}`;
  };
  const stateOf = async (path: string) => (await api.call('GET', path)).body.state;

  test('lets a participant in once, with one notice, and lists it by its state', async () => {
    const path = await waitIn({ waiting: true });
    const list = async (status: string) =>
      (await api.call('GET', `/v1/rooms/${room}/participants?status=${status}`)).body.data;
    expect([await list('waiting'), await list('active')]).toMatchObject([[{ state: 'waiting' }], []]);
    expect((await api.call('GET', `/v1/rooms/${room}`)).body).toMatchObject({ status: 'created', participantCount: 0 });
    const { notices } = await listen();
    for (const times of [1, 2]) {
      const admitted = await api.call('POST', `${path}/admit`);
      expect([times, admitted.status, admitted.body]).toMatchObject([times, 200, { permissions: ['room:join'] }]);
    }
    await eventually(() => notices.length > 0);
    expect(notices).toHaveLength(1);
    expect([await list('waiting'), await list('active')]).toMatchObject([[], [{ state: 'connected' }]]);
    expect(await eventsOf('participant.admitted')).toMatchObject([{ participant: { name: 'Ada' } }]);
    expect((await api.call('GET', `/v1/rooms/${room}`)).body).toMatchObject({ status: 'active', participantCount: 1 });
  });

  test('is not needed unless the token request or the room says so', async () => {
    expect(await stateOf(await waitIn({}))).toBe('connected');
    await api.call('PATCH', `/v1/rooms/${room}`, { body: { waitingRoom: true } });
    expect(await stateOf(await waitIn({}))).toBe('waiting');
    expect(await stateOf(await waitIn({ waiting: false }))).toBe('connected');
    const path = await waitIn({ waiting: true });
    const participantId = path.split('/').at(-1);
    for (const waiting of [true, false]) {
      const body = { participantName: 'Ada', participantId, waiting };
      const again = await api.call('POST', `/v1/rooms/${room}/tokens`, { body });
      expect([again.status, again.body.error.details[0].path]).toEqual([400, 'body.waiting']);
    }
    await api.invite(room, { participantName: 'Ada', participantId });
    expect(await stateOf(path)).toBe('waiting');
  });

  test('is refused for a full room, a removed participant, an ended room and unknown ids', async () => {
    room = await api.room({ name: 'Small', maxParticipants: 1 });
    const path = await waitIn({ waiting: true });
    await waitIn({});
    const answer = async (url: string) => {
      const { status, body } = await api.call('POST', `${url}/admit`);
      return [status, body.error.code];
    };
    expect(await answer(path)).toEqual([409, 'ROOM_FULL']);
    expect(await answer(`/v1/rooms/${room}/participants/part_0`)).toEqual([404, 'PARTICIPANT_NOT_FOUND']);
    const message = { data: 1, to: [path.split('/').at(-1)] };
    expect((await api.call('POST', `/v1/rooms/${room}/messages`, { body: message })).status).toBe(404);
    expect((await api.call('POST', `${path}/requests`, { body: { method: 'm' } })).status).toBe(404);
    await api.call('DELETE', path);
    expect(await answer(path)).toEqual([409, 'PARTICIPANT_REMOVED']);
    await api.call('DELETE', `/v1/rooms/${room}`);
    expect(await answer(path)).toEqual([409, 'ROOM_ENDED']);
  });
});

describe('POST …/tracks/{trackId}/mute', () => {
  test('mutes a track once, with one notice and one event', async () => {
    const { path, sessionId } = await enter();
    const { notices } = await listen();
    const muted = { trackId: 'mic', kind: 'audio', source: 'microphone', muted: true };
    for (const body of [undefined, {}]) {
      const response = await api.call('POST', `${path}/tracks/mic/mute`, body === undefined ? {} : { body });
      expect([response.status, response.body]).toEqual([200, muted]);
    }
    await eventually(() => notices.length > 0);
    expect(await eventsOf('track.muted')).toMatchObject([{ sessionId, track: { trackId: 'mic', kind: 'audio' } }]);
  });

  test('answers 404 for a track that is not published, and 400 for a body with fields', async () => {
    const { path } = await enter();
    const none = await api.call('POST', `${path}/tracks/screen/mute`);
    expect([none.status, none.body.error.code]).toEqual([404, 'TRACK_NOT_FOUND']);
    const unmute = await api.call('POST', `${path}/tracks/mic/mute`, { body: { muted: false } });
    expect([unmute.status, unmute.body.error.details[0].path]).toEqual([400, 'body.muted']);
    const nobody = await api.call('POST', `/v1/rooms/${room}/participants/part_0/tracks/mic/mute`);
    expect([nobody.status, nobody.body.error.code]).toEqual([404, 'PARTICIPANT_NOT_FOUND']);
  });
});

describe('POST /v1/rooms/{roomId}/messages', () => {
  const send = (body: object, headers: Record<string, string> = {}) =>
    api.call('POST', `/v1/rooms/${room}/messages`, { body, headers });

  test('passes a message of the server to the gateways, to all or to some', async () => {
    const [ada] = [await enter(), await enter()];
    const { messages } = await listen();
    const all = await send({ data: { text: 'hi' } });
    expect([all.status, all.body.recipients]).toEqual([202, 2]);
    const one = await send({ data: null, to: [ada.participantId] });
    expect(one.body.recipients).toBe(1);
    await eventually(() => messages.length === 2);
    expect(messages).toEqual([
      { from: 'server', to: null, text: expect.any(String) },
      { from: 'server', to: [ada.participantId], text: expect.any(String) },
    ]);
    const { text } = messages[0] as { text: string };
    expect(JSON.parse(text)).toEqual({
      type: 'message',
      from: 'server',
      data: { text: 'hi' },
      sentAt: all.body.sentAt,
    });
  });

  test('sends a message with an Idempotency-Key once', async () => {
    await enter();
    const { messages } = await listen();
    const [key] = ['again'];
    const first = await send({ data: 1 }, { 'idempotency-key': key });
    const second = await send({ data: 1 }, { 'idempotency-key': key });
    expect([second.status, second.body, second.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect((await send({ data: 2 }, { 'idempotency-key': key })).status).toBe(422);
    await send({ data: 'last' });
    await eventually(() => messages.length === 2);
  });

  test('is not sent if a recipient is not in the room', async () => {
    const { participantId, sessionId } = await enter();
    const refused = await send({ data: 1, to: [participantId, 'part_0'] });
    expect([refused.status, refused.body.error]).toEqual([
      404,
      expect.objectContaining({
        code: 'PARTICIPANT_NOT_FOUND',
        details: [{ path: 'body.to', message: 'part_0 is not in the room' }],
      }),
    ]);
    await endOne(api.database, { sessionId, connection: 1 }, 'left', new Date());
    expect((await send({ data: 1, to: [participantId] })).status).toBe(404);
    expect((await send({ data: 1 })).body.recipients).toBe(0);
  });

  test('with more than 16 KiB of data is refused', async () => {
    const response = await send({ data: 'x'.repeat(16 * 1024) });
    expect([response.status, response.body.error.details[0].path]).toEqual([413, 'body.data']);
  });

  test('is refused in an ended or unknown room', async () => {
    await enter();
    const unknown = await api.call('POST', '/v1/rooms/room_0/messages', { body: { data: 1 } });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    await api.call('DELETE', `/v1/rooms/${room}`);
    expect((await send({ data: 1 })).body.error.code).toBe('ROOM_ENDED');
  });
});
