import { beforeAll, expect, test } from '@jest/globals';
import { buffersOf } from '../client/statements.testkit.js';
import { admitJoins } from './admit-joins.js';
import { lockParticipants, readJoining } from './join-locks.js';
import type { JoinInput } from './session.js';
import { readRoomChanges } from './room-changes.js';
import { startTestRooms, type TestRooms } from './sessions.testkit.js';

const CROWD = 10_000;

let rooms: TestRooms;
let roomId: string;
beforeAll(async () => {
  rooms = await startTestRooms();
  const { sql } = rooms;
  const { environmentId } = rooms.tenant;
  for (const table of ['rooms', 'participants', 'participant_sessions', 'participant_tokens'])
    await sql(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  await sql(`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, started_at)
    SELECT 'room_x' || n, '${environmentId}', 'Room', '{}', 'active', 100, now(), now() FROM generate_series(1, 2000) n`);
  const fill = (prefix: string, room: string, count: number) =>
    sql(`
    WITH people AS (
      INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at, connected_at)
      SELECT '${prefix}' || n, '${environmentId}', ${room}, 'Ada', '{}', 'participant', now(), now(), now()
      FROM generate_series(1, ${count}) n RETURNING id, room_id
    )
    INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, instance_id, version)
    SELECT 'sess_' || id, '${environmentId}', room_id, id, now(), 'instance-1', substr(id, ${prefix.length + 1})::int FROM people`);
  await fill('part_a', `'room_x' || n`, 2000);
  await sql('ANALYZE');
  roomId = await rooms.newRoom();
  await fill('part_b', `'${roomId}'`, CROWD);
  await sql(`UPDATE rooms SET version = ${CROWD} WHERE id = '${roomId}'`);
});

test('joins of a crowded room touch as little with the statistics of small rooms', async () => {
  const { database, tenant } = rooms;
  const request = { tenant, roomId, participantId: 'part_b7' };
  const input = { ...request, tokenId: 'tok_1' } as JoinInput;
  const touched = {
    admission: await buffersOf(database, (db) => admitJoins(db, [request], { intervalMs: 1000, aheadMs: 5000 })),
    locks: await buffersOf(database, (db) => lockParticipants(db, roomId, [input])),
    read: await buffersOf(database, (db) => readJoining(db, roomId, [input])),
    changes: await buffersOf(database, (db) => readRoomChanges(db, [{ roomId, after: CROWD - 3 }])),
  };
  const { read, ...others } = touched;
  expect(Math.max(...Object.values(others))).toBeLessThan(60);
  // The live sessions are counted in their index. Reading the participants, too, would touch 2,500 buffers.
  expect(read).toBeLessThan(600);
});
