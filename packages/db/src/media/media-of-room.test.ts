import { beforeAll, expect, test } from '@jest/globals';
import { publishTracks } from '../sessions/session-tracks.js';
import { NOON, startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { beginForward, openedForward } from './media-forwards.js';
import { recordNodeState } from './media-nodes.js';
import { findRoomMedia } from './media-of-room.js';
import { registerMediaNode } from './media-registry.js';
import { addRoomNode } from './room-placement.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
const mediaOf = (roomId: string, tenant = rooms.tenant) => findRoomMedia(rooms.database.sql, tenant, roomId);

test('the media of a room has its servers with their sessions, and the newest of its forwards', async () => {
  const { sql } = rooms.database;
  const roomId = await rooms.newRoom();
  expect(await mediaOf(roomId)).toEqual({ nodes: [], forwards: [], forwardCount: 0 });
  await registerMediaNode(sql, { id: 'shown-a', url: 'ws://a/', capacity: null, region: 'eu', hasAgent: true });
  await recordNodeState(sql, 'shown-a', 'up');
  const ada = await rooms.enter(roomId, { mediaNodeId: 'shown-a' });
  const bob = await rooms.enter(roomId, { mediaNodeId: 'shown-a' });
  await addRoomNode(sql, roomId, 'shown-b', 3);
  await sql.$executeRaw`UPDATE participant_sessions SET media_node_id = 'shown-b' WHERE id = ${bob.sessionId}`;
  const feedId = `${ada.sessionId}-1-1@shown-a`;
  const track = { trackId: 'cam', kind: 'video' as const, source: 'camera' as const, muted: false, feedId, mid: '1' };
  await publishTracks(rooms.database, ada.held, [track], NOON);
  const forward = { roomId, feedId, fromNodeId: 'shown-a', toNodeId: 'shown-b' };
  const ports = Array.from({ length: 102 }, (_, n) => 5000 + 2 * n);
  for (const [n] of ports.entries()) {
    await beginForward(sql, rooms.tenant, forward, `shown+${n}`, { ports, environmentMax: 200 });
    await openedForward(sql, `shown+${n}`, ['0', '1']);
  }
  const found = await mediaOf(roomId);
  expect(found?.nodes).toEqual([
    { id: 'shown-a', region: 'eu', state: 'up', sessions: 1 },
    { id: 'shown-b', region: null, state: null, sessions: 1 },
  ]);
  expect([found?.forwardCount, found?.forwards.length]).toEqual([102, 100]);
  expect(found?.forwards[0]).toEqual({
    participantId: ada.participantId,
    fromNodeId: 'shown-a',
    toNodeId: 'shown-b',
    state: 'up',
    streams: 2,
    createdAt: expect.any(Date),
  });
  expect(await mediaOf(roomId, { ...rooms.tenant, environmentId: 'env_other' })).toBeNull();
});
