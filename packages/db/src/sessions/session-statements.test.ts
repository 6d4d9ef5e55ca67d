import { beforeAll, expect, test } from '@jest/globals';
import { planOf } from '../client/plan.testkit.js';
import { readRoomChanges, readSessionEnd } from './room-changes.js';
import { isParticipantHeld, sessionsHeldBy } from './signaling-instances.js';
import { startTestRooms, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});

test('runs the frequent statements on indexes', async () => {
  const roomId = await rooms.newRoom();
  const { environmentId } = rooms.tenant;
  await rooms.sql(`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, started_at)
    SELECT 'room_x' || n, '${environmentId}', 'Room', '{}', 'active', 100, now(), now() FROM generate_series(1, 2000) n`);
  await rooms.sql(`
    INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at, connected_at, left_at)
    SELECT 'part_x' || n, '${environmentId}', 'room_x' || (1 + n % 2000), 'Ada', '{}', 'participant', now(), now(), now(), now()
    FROM generate_series(1, 20000) n`);
  await rooms.sql(`
    INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, ended_at, end_reason, instance_id)
    SELECT 'sess_x' || n, environment_id, room_id, 'part_x' || n, now(), CASE WHEN n > 500 THEN now() END,
      CASE WHEN n > 500 THEN 'left' END, 'instance-1'
    FROM participants JOIN generate_series(1, 20000) n ON participants.id = 'part_x' || n`);
  await rooms.sql(`
    INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted, published_at)
    SELECT 'sess_x' || n, 'a', 'audio', 'microphone', 'feed', '0', false, now() FROM generate_series(1, 2000) n`);
  await rooms.sql('ANALYZE');
  const plans = await Promise.all([
    planOf(rooms.database, (db) => readRoomChanges(db, [{ roomId, after: null }])),
    planOf(rooms.database, (db) => readRoomChanges(db, [{ roomId, after: 1 }])),
    planOf(rooms.database, (db) => readSessionEnd(db, ['sess_x1'])),
    planOf(rooms.database, (db) => sessionsHeldBy(db, 'instance-2')),
    planOf(rooms.database, (db) => isParticipantHeld(db, 'part_x1', { graceMs: 15_000, instanceDeadMs: 8000 })),
  ]);
  for (const plan of plans)
    expect(plan).not.toMatch(/Seq Scan on (participant_sessions|participants|rooms|session_tracks)/);
});
