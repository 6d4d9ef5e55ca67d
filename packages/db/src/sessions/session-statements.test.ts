import { beforeAll, expect, test } from '@jest/globals';
import { planOf } from '../client/plan.testkit.js';
import { roomsOnNode } from '../media/room-placement.js';
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
    planOf(rooms.database, (db) => roomsOnNode(db, 'node')),
  ]);
  for (const plan of plans)
    expect(plan).not.toMatch(/Seq Scan on (participant_sessions|participants|rooms|session_tracks)/);
  expect(plans[0]).toContain('participant_sessions_live_in_room_idx');
  expect(plans[1]).toContain('participant_sessions_room_version_idx');
});

test('reads the snapshot of a room with 1,000 publishing sessions in less than five seconds', async () => {
  const roomId = await rooms.newRoom({ status: 'active' });
  const { environmentId } = rooms.tenant;
  await rooms.sql(`
    INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at, connected_at)
    SELECT 'part_y' || n, '${environmentId}', '${roomId}', 'Ada', '{"seat": 1}', 'participant', now(), now(), now()
    FROM generate_series(1, 1000) n`);
  await rooms.sql(`
    INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, instance_id, permissions)
    SELECT 'sess_y' || n, '${environmentId}', '${roomId}', 'part_y' || n, now(), 'instance-1', '{room:join}'
    FROM generate_series(1, 1000) n`);
  await rooms.sql(`
    INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted, published_at)
    SELECT 'sess_y' || n, k, k, CASE k WHEN 'audio' THEN 'microphone' ELSE 'camera' END, 'feed', '0', false, now()
    FROM generate_series(1, 1000) n, unnest('{audio,video}'::text[]) k`);
  await rooms.sql('ANALYZE');
  const times: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    const startedAt = performance.now();
    const { sessions } = await rooms.snapshot(roomId);
    times.push(performance.now() - startedAt);
    expect(sessions).toHaveLength(1000);
    expect(sessions[0]!.tracks).toHaveLength(2);
  }
  const median = times.sort((a, b) => a - b)[5]!;
  process.stderr.write(`    measured: snapshot of 1,000 sessions with 2,000 tracks ${Math.round(median)} ms\n`);
  expect(median).toBeLessThan(5000);
});
