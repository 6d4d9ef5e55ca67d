import { beforeAll, expect, test } from '@jest/globals';
import { startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { listMediaNodes, recordNodeState, setNodeDraining } from './media-nodes.js';
import { placeRoom, roomsStatus } from './room-placement.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});

test('lets one of several concurrent moves of a room win, and returns its placement to all', async () => {
  const roomId = await rooms.newRoom();
  await rooms.enter(roomId, { mediaNodeId: 'a' });
  const snapshot = await rooms.snapshot(roomId);
  const standing = await Promise.all(['b', 'c', 'd'].map((to) => placeRoom(rooms.database.sql, roomId, snapshot, to)));
  const ids = new Set(standing.map(({ mediaNodeId }) => mediaNodeId));
  expect(ids.size).toBe(1);
  expect(standing.map(({ mediaGeneration }) => mediaGeneration)).toEqual([2, 2, 2]);
  const [now] = standing;
  expect(await placeRoom(rooms.database.sql, roomId, now!, null)).toEqual({
    mediaNodeId: null,
    mediaGeneration: 3,
    version: 3,
  });
  expect(await roomsStatus(rooms.database.sql, [roomId, 'room_unknown'])).toEqual(
    new Map([
      [roomId, { roomId, status: 'active', mediaNodeId: null, mediaGeneration: 3, furtherNodeIds: [], sequence: 2 }],
    ]),
  );
});

test('does not move a room that is ending', async () => {
  const roomId = await rooms.newRoom();
  await rooms.enter(roomId, { mediaNodeId: 'a' });
  const snapshot = await rooms.snapshot(roomId);
  await rooms.end(roomId);
  expect(await placeRoom(rooms.database.sql, roomId, snapshot, 'b')).toEqual({
    mediaNodeId: 'a',
    mediaGeneration: 1,
    version: 2,
  });
});

test('reports the state of a media server as changed only when it changes', async () => {
  const record = (state: 'up' | 'down', version?: string) =>
    recordNodeState(rooms.database.sql, 'watched', state, { version: version ?? null });
  await setNodeDraining(rooms.database.prisma, 'watched', true);
  expect((await listMediaNodes(rooms.database.sql)).find(({ id }) => id === 'watched')).toMatchObject({
    state: null,
    checkedAt: null,
  });
  expect([await record('down'), await record('down'), await record('up'), await record('up')]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect((await listMediaNodes(rooms.database.sql)).find(({ id }) => id === 'watched')).toMatchObject({
    state: 'up',
    draining: true,
    version: null,
    checkedAt: expect.any(Date),
  });
  const outcomes = [await record('up', '1.4.1'), await record('up', '1.4.1'), await record('up'), await record('down')];
  expect(outcomes).toEqual([true, false, false, true]);
  expect((await listMediaNodes(rooms.database.sql)).find(({ id }) => id === 'watched')).toMatchObject({
    state: 'down',
    version: '1.4.1',
  });
});
