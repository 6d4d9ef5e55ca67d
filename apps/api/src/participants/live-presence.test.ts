import { beforeAll, expect, test } from '@jest/globals';
import { publishTracks, setTracksMuted } from '@callplane/db';
import { endOne } from '@callplane/testing';
import { startTestApi, type Joined, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const leave = (joined: Joined, at: Date) => endOne(api.database, joined, 'left', at);
const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 12, 0, second));

test('a participant joins at its first connection, leaves with its last session, and becomes active again on rejoining', async () => {
  const room = await api.room();
  const invited = await api.invite(room);
  const path = `/v1/rooms/${room}/participants/${invited.participantId}`;
  const shown = async () => {
    const { joinedAt, leftAt } = (await api.call('GET', path)).body;
    return { joinedAt, leftAt };
  };
  const listed = async (status: string) =>
    (await api.call('GET', `/v1/rooms/${room}/participants?status=${status}`)).body.data.length;
  expect([await listed('active'), await listed('left')]).toEqual([0, 0]);
  const first = await api.join(room, invited, at(1));
  expect(await shown()).toEqual({ joinedAt: at(1).toISOString(), leftAt: null });
  expect((await api.call('GET', `/v1/rooms/${room}`)).body).toMatchObject({
    status: 'active',
    startedAt: at(1).toISOString(),
  });
  // With a second connection, the participant stays active after its first session has ended.
  const second = await api.join(room, invited, at(2));
  expect(await shown()).toEqual({ joinedAt: at(1).toISOString(), leftAt: null });
  expect(await leave(first, at(3))).toBe(false);
  await leave(second, at(4));
  expect(await shown()).toEqual({ joinedAt: at(1).toISOString(), leftAt: at(4).toISOString() });
  expect([await listed('active'), await listed('left')]).toEqual([0, 1]);
  await api.join(room, invited, at(5));
  expect(await shown()).toEqual({ joinedAt: at(1).toISOString(), leftAt: null });
  expect([await listed('active'), await listed('left')]).toEqual([1, 0]);
});

test('a room counts the participants that are in it, in reads, lists, changes and its own events', async () => {
  const room = await api.room({ name: 'Counted' });
  const counts = async () => {
    const read = async (path: string) => (await api.call('GET', path)).body;
    const lists = ['/v1/rooms', '/v1/rooms?name=Counted', '/v1/rooms?namePrefix=Count', '/v1/rooms?status=active'];
    const listed = await Promise.all(
      lists.map(
        async (path) => (await read(path)).data.find(({ id }: { id: string }) => id === room)?.participantCount,
      ),
    );
    return [(await read(`/v1/rooms/${room}`)).participantCount, ...listed];
  };
  const [ada, ben] = [await api.invite(room), await api.invite(room)];
  expect(await counts()).toEqual([0, 0, 0, 0, undefined]);
  const joined = await api.join(room, ada, at(1));
  await api.join(room, ben, at(2));
  // The second session of a participant replaces the first one.
  await api.join(room, ben, at(3));
  expect(await counts()).toEqual([2, 2, 2, 2, 2]);
  const changed = (await api.call('PATCH', `/v1/rooms/${room}`, { body: { metadata: { a: 1 } } })).body;
  expect(changed).toEqual((await api.call('GET', `/v1/rooms/${room}`)).body);
  await leave(joined, at(4));
  expect(await counts()).toEqual([1, 1, 1, 1, 1]);
  const { data } = (await api.call('GET', `/v1/events?roomId=${room}`)).body;
  const ofRoom = data.filter(({ type }: { type: string }) => type.startsWith('room.'));
  expect(
    ofRoom.map((event: { type: string; data: { room: { participantCount: number } } }) => [
      event.type,
      event.data.room.participantCount,
    ]),
  ).toEqual([
    ['room.created', 0],
    ['room.started', 1],
    ['room.updated', 2],
  ]);
});

test('a participant shows its state, its permissions and its published tracks, in reads and lists', async () => {
  const room = await api.room();
  const invited = await api.invite(room);
  const path = `/v1/rooms/${room}/participants/${invited.participantId}`;
  const shown = async () => {
    const { state, permissions, tracks } = (await api.call('GET', path)).body;
    return { state, permissions, tracks };
  };
  const permissions = ['room:join', 'audio:publish'];
  expect(await shown()).toEqual({ state: 'invited', permissions: ['room:join'], tracks: [] });
  await api.call('PATCH', path, { body: { permissions } });
  const joined = await api.join(room, invited, at(1));
  expect(await shown()).toEqual({ state: 'connected', permissions, tracks: [] });
  const held = { sessionId: joined.sessionId, connection: 1 };
  const microphone = { trackId: 'mic', kind: 'audio', source: 'microphone' } as const;
  await api.database.prisma.participantSession.update({ where: { id: joined.sessionId }, data: { permissions } });
  await publishTracks(api.database, held, [{ ...microphone, muted: false, feedId: 'feed', mid: '0' }], at(2));
  expect((await shown()).tracks).toEqual([{ ...microphone, muted: false }]);
  expect(await setTracksMuted(api.database, [{ held, trackId: 'mic', muted: true }])).toEqual([true]);
  expect((await shown()).tracks).toEqual([{ ...microphone, muted: true }]);
  const { data } = (await api.call('GET', `/v1/rooms/${room}/participants`)).body;
  expect(data).toEqual([(await api.call('GET', path)).body]);
  await api.database.prisma.participantSession.update({
    where: { id: joined.sessionId },
    data: { disconnectedAt: at(3) },
  });
  expect((await shown()).state).toBe('disconnected');
  await leave(joined, at(4));
  expect(await shown()).toEqual({ state: 'left', permissions, tracks: [] });
  await api.call('DELETE', path, { headers: { prefer: 'respond-async' } });
  expect((await shown()).state).toBe('removed');
});
