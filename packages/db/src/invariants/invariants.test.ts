import { beforeAll, describe, expect, test } from '@jest/globals';
import { endOne, insertTestEndpoint } from '@callplane/testing';
import { endRoomPresence, markRoomEnded } from '../rooms/room-cleanup.js';
import { writeSessionsEnded } from '../sessions/session-ends.js';
import { findRoom } from '../rooms/rooms.repository.js';
import { startTestRooms, track, type TestRooms } from '../sessions/sessions.testkit.js';
import { publishTracks } from '../sessions/session-tracks.js';
import { checkInvariants, type InvariantResult } from './check-invariants.js';
import { INVARIANTS } from './invariants.js';

let rooms: TestRooms;
/** Ids of rows that the breaking statements change. */
let ids: Record<'live' | 'ended' | 'participant' | 'operation' | 'endpoint', string>;

beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 4 });
  const { database, tenant } = rooms;
  const now = new Date();
  const long = new Date(now.getTime() - 3_600_000);
  const endpoint = await insertTestEndpoint(database, tenant, { ordering: 'room', createdAt: long, updatedAt: long });

  const live = await rooms.newRoom();
  const one = await rooms.enter(live);
  await publishTracks(database, one.held, [track('a')], now);
  await endOne(database, (await rooms.enter(live)).held, 'left', now);
  const removed = await rooms.enter(live);
  await rooms.remove(live, removed.participantId);
  const ended = await rooms.newRoom();
  await rooms.enter(ended);
  await rooms.end(ended);
  await database.transaction(async (tx) => {
    const presence = await endRoomPresence(tx, ended, now);
    await writeSessionsEnded(tx, tenant, (await findRoom(tx, tenant, ended))!, presence.ended, 'room_ended', now);
    await markRoomEnded(tx, ended, now);
  });
  await rooms.sql(
    `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE room_id = '${ended}'`,
  );
  // The test kit writes events at a fixed time of the future.
  await rooms.sql(`UPDATE events SET created_at = now()`);
  await rooms.sql(`UPDATE participant_sessions SET started_at = now()`);
  const { id: operation } = await database.prisma.runtimeOperation.findFirstOrThrow({
    where: { participantId: removed.participantId },
  });
  ids = { live, ended, participant: one.participantId, operation, endpoint };
});

const broken = async () => (await checkInvariants(rooms.database, 1000)).filter(({ broken }) => broken > 0);

const TABLES = {
  rooms: 'rooms',
  participants: 'participants',
  operations: 'runtime_operations',
  events: 'events',
  deliveries: 'webhook_deliveries',
};
async function rowsOf(subject: keyof typeof TABLES): Promise<string[]> {
  const rows = await rooms.database.prisma.$queryRawUnsafe<{ id: string }[]>(`SELECT id FROM ${TABLES[subject]}`);
  return rows.map(({ id }) => id);
}

/** The only row that the statement of {@link BREAKS} breaks; the others break several. */
const ROWS: Record<string, () => string> = {
  'events-numbered': () => ids.live,
  'ended-rooms-empty': () => ids.ended,
  'ending-rooms-worked-on': () => ids.ended,
  capacity: () => ids.live,
  'sessions-reported-once': () => ids.live,
  'removed-participants-gone': () => ids.operation,
  'operations-bounded': () => ids.operation,
  'participants-in-their-room': () => ids.participant,
};

/** Statements that break an invariant, and those that repair the data. */
const BREAKS: Record<string, () => { sql: string; undo: string }> = {
  'events-numbered': () => ({
    sql: `UPDATE rooms SET last_sequence = last_sequence + 1 WHERE id = '${ids.live}'`,
    undo: `UPDATE rooms SET last_sequence = last_sequence - 1 WHERE id = '${ids.live}'`,
  }),
  'ended-rooms-empty': () => ({
    sql: `INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted, published_at)
      SELECT id, 'left-over', 'audio', 'microphone', 'f', '0', false, now() FROM participant_sessions WHERE room_id = '${ids.ended}'`,
    undo: `DELETE FROM session_tracks WHERE track_id = 'left-over'`,
  }),
  'ending-rooms-worked-on': () => ({
    sql: `UPDATE runtime_operations SET status = 'pending', completed_at = NULL WHERE room_id = '${ids.ended}'`,
    undo: `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE room_id = '${ids.ended}'`,
  }),
  capacity: () => ({
    sql: `UPDATE rooms SET max_participants = 1 WHERE id = '${ids.live}'`,
    undo: `UPDATE rooms SET max_participants = 100 WHERE id = '${ids.live}'`,
  }),
  'sessions-reported-once': () => ({
    sql: `UPDATE events SET type = 'participant.moved' WHERE room_id = '${ids.live}' AND type = 'participant.left'`,
    undo: `UPDATE events SET type = 'participant.left' WHERE type = 'participant.moved'`,
  }),
  'removed-participants-gone': () => ({
    sql: `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE id = '${ids.operation}'`,
    undo: `UPDATE runtime_operations SET status = 'pending', completed_at = NULL WHERE id = '${ids.operation}'`,
  }),
  'operations-bounded': () => ({
    sql: `UPDATE runtime_operations SET lease_token = gen_random_uuid(), lease_expires_at = now() + interval '1 hour'
      WHERE id = '${ids.operation}'`,
    undo: `UPDATE runtime_operations SET lease_token = NULL, lease_expires_at = NULL WHERE id = '${ids.operation}'`,
  }),
  'events-delivered': () => ({
    sql: `UPDATE webhook_deliveries SET endpoint_id = 'we_other' WHERE id = (SELECT min(id) FROM webhook_deliveries)`,
    undo: `UPDATE webhook_deliveries SET endpoint_id = '${ids.endpoint}'`,
  }),
  'attempts-numbered': () => ({ sql: attempt('connect', 2), undo: 'DELETE FROM webhook_attempts' }),
  'outcomes-proven': () => ({
    sql: `UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now(), run_attempts = 1`,
    undo: `UPDATE webhook_deliveries SET status = 'pending', completed_at = NULL, run_attempts = 0`,
  }),
  'deliveries-bounded': () => ({
    sql: `UPDATE webhook_deliveries SET status = 'failed', failure_reason = 'attempts_exhausted', completed_at = now()`,
    undo: `UPDATE webhook_deliveries SET status = 'pending', failure_reason = NULL, completed_at = NULL`,
  }),
  'rooms-in-order': () => ({
    sql: `UPDATE webhook_deliveries SET status = 'delivering', lease_token = gen_random_uuid(), lease_expires_at = now()
      WHERE room_id = '${ids.live}'`,
    undo: `UPDATE webhook_deliveries SET status = 'pending', lease_token = NULL, lease_expires_at = NULL`,
  }),
  'tenants-apart': () => ({
    sql: `UPDATE webhook_deliveries SET environment_id = 'env_other'`,
    undo: `UPDATE webhook_deliveries SET environment_id = '${rooms.tenant.environmentId}'`,
  }),
  'participants-in-their-room': () => ({
    sql: `UPDATE participant_sessions SET environment_id = 'env_other' WHERE participant_id = '${ids.participant}'`,
    undo: `UPDATE participant_sessions SET environment_id = '${rooms.tenant.environmentId}'`,
  }),
};

const attempt = (outcome: string, number: number) => `
  INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at, duration_ms,
    outcome, response_truncated)
  SELECT 'att_' || id, id, 0, ${number}, 'https://192.0.2.1/', 1, now(), 1, '${outcome}', false FROM webhook_deliveries`;

describe('the invariants', () => {
  test('hold for rooms, participants, events and deliveries that the repositories wrote', async () => {
    const results = await checkInvariants(rooms.database, 1000);
    expect(results.map(({ invariant, broken }) => [invariant.name, broken])).toEqual(
      INVARIANTS.map(({ name }) => [name, 0]),
    );
    // None of them holds only because there was nothing to look at.
    expect(results.every(({ checked }) => checked! > 0)).toBe(true);
  });

  test.each(INVARIANTS.map(({ name }) => name))(
    'find the rows that break "%s", and no other invariant',
    async (name) => {
      const { sql, undo } = BREAKS[name]!();
      // Without foreign keys, which protect some of them.
      await rooms.sql(`SET LOCAL session_replication_role = replica; ${sql}`);
      try {
        const found = await broken();
        expect(found.map(({ invariant }) => invariant.name)).toEqual([name]);
        const [{ ids: named, broken: count, invariant }] = found as [InvariantResult];
        expect(named).toHaveLength(Math.min(count, 10));
        expect(await rowsOf(invariant.subject)).toEqual(expect.arrayContaining(named));
        const expected = ROWS[name];
        if (expected !== undefined) expect(named).toEqual([expected()]);
      } finally {
        await rooms.sql(`SET LOCAL session_replication_role = replica; ${undo}`);
      }
      expect(await broken()).toEqual([]);
    },
  );

  test('look only at the newest rows', async () => {
    const results = await checkInvariants(rooms.database, 1);
    expect(results.map(({ checked }) => checked)).toEqual(INVARIANTS.map(() => 1));
  });
});
