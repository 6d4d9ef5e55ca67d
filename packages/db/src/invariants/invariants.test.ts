import { beforeAll, describe, expect, test } from '@jest/globals';
import { execute, endOne, insertTestEndpoint, moveOne } from '@callplane/testing';
import { endRoomPresence, writeSessionsEnded } from '../sessions/session-ends.js';
import { findRoom } from '../rooms/rooms.repository.js';
import { startTestRooms, track, type TestRooms } from '../sessions/sessions.testkit.js';
import { publishTracks } from '../sessions/session-tracks.js';
import { checkInvariants, queryOf, INVARIANTS } from './invariants.js';

let rooms: TestRooms;
/** Ids of rows that the breaking statements change. */
let ids: Record<'live' | 'ended' | 'participant' | 'moved' | 'mover' | 'operation', string>;

beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 4 });
  const { database, tenant } = rooms;
  const now = new Date();
  const long = new Date(now.getTime() - 3_600_000);
  await insertTestEndpoint(database, tenant, { ordering: 'room', createdAt: long, updatedAt: long });

  const live = await rooms.newRoom();
  const one = await rooms.enter(live);
  await publishTracks(database, one.held, [track('a')], now);
  await endOne(database, (await rooms.enter(live)).held, 'left', now);
  const removed = await rooms.enter(live);
  await rooms.remove(live, removed.participantId);
  const mover = await rooms.enter(live);
  const elsewhere = await rooms.newRoom();
  await moveOne(database, tenant, { roomId: live, ...mover }, { roomId: elsewhere }, now);
  const { id: moved } = await database.prisma.participant.findFirstOrThrow({ where: { roomId: elsewhere } });
  const ended = await rooms.newRoom();
  await rooms.enter(ended);
  await rooms.end(ended);
  await database.transaction(async (tx) => {
    const presence = await endRoomPresence(tx, ended, now);
    await writeSessionsEnded(tx, tenant, (await findRoom(tx, tenant, ended))!, presence.ended, 'room_ended', now);
  });
  await rooms.sql(`UPDATE rooms SET status = 'ended', ended_at = now() WHERE id = '${ended}'`);
  await rooms.sql(
    `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE room_id = '${ended}'`,
  );
  // The test kit writes events at a fixed time of the future.
  await rooms.sql(`UPDATE events SET created_at = now()`);
  await rooms.sql(`UPDATE participant_sessions SET started_at = now()`);
  const { id: operation } = await database.prisma.runtimeOperation.findFirstOrThrow({
    where: { participantId: removed.participantId },
  });
  ids = { live, ended, participant: one.participantId, moved, mover: mover.participantId, operation };
});

/** Rolls the statement that breaks an invariant back. */
class RollBack extends Error {}

/** The invariants that a statement breaks, with the ids of the rows. */
async function brokenBy(statement: string): Promise<[name: string, ids: string[]][]> {
  const found: [string, string[]][] = [];
  const looking = rooms.database.transaction(async (tx) => {
    // Without foreign keys, which protect some of them.
    await tx.$executeRaw`SET LOCAL session_replication_role = replica`;
    await execute({ sql: tx }, statement);
    for (const invariant of INVARIANTS) {
      const [row] = await tx.$queryRaw<[{ broken: number; ids: string[] }]>`${queryOf(invariant, 1000)}`;
      if (row.broken > 0) found.push([invariant.name, row.ids]);
    }
    throw new RollBack();
  });
  await expect(looking).rejects.toThrow(RollBack);
  return found;
}

/** The only row that the statement of {@link BREAKS} breaks; the others break several. */
const ROWS: Record<string, () => string> = {
  'events-numbered': () => ids.live,
  'ended-rooms-empty': () => ids.ended,
  'ending-rooms-worked-on': () => ids.ended,
  'recordings-worked-on': () => ids.live,
  capacity: () => ids.live,
  'sessions-reported-once': () => ids.live,
  'removed-participants-gone': () => ids.operation,
  'moved-participants-gone': () => ids.moved,
  'operations-bounded': () => ids.operation,
  'participants-in-their-room': () => ids.participant,
};

/** Statements that each break one invariant. */
const BREAKS: Record<string, () => string> = {
  'events-numbered': () => `UPDATE rooms SET last_sequence = last_sequence + 1 WHERE id = '${ids.live}'`,
  'ended-rooms-empty': () => `
    INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted, published_at)
    SELECT id, 'left', 'audio', 'microphone', 'f', '0', false, now() FROM participant_sessions
    WHERE room_id = '${ids.ended}'`,
  'ending-rooms-worked-on': () =>
    `UPDATE runtime_operations SET status = 'pending', completed_at = NULL WHERE room_id = '${ids.ended}'`,
  'recordings-worked-on': () => `UPDATE rooms SET recording_since = now() WHERE id = '${ids.live}'`,
  capacity: () => `UPDATE rooms SET max_participants = 1 WHERE id = '${ids.live}'`,
  'sessions-reported-once': () =>
    `UPDATE events SET type = 'participant.moved' WHERE room_id = '${ids.live}' AND type = 'participant.left'`,
  'removed-participants-gone': () =>
    `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE id = '${ids.operation}'`,
  'moved-participants-gone': () =>
    `UPDATE participant_tokens SET revoked_at = NULL WHERE participant_id = '${ids.mover}'`,
  'operations-bounded': () => `
    UPDATE runtime_operations SET lease_token = gen_random_uuid(), lease_expires_at = now() + interval '1 hour'
    WHERE id = '${ids.operation}'`,
  'events-delivered': () =>
    `UPDATE webhook_deliveries SET endpoint_id = 'we_other' WHERE id = (SELECT min(id) FROM webhook_deliveries)`,
  'attempts-numbered': () => `
    INSERT INTO webhook_attempts (id, delivery_id, endpoint_id, replay_count, attempt, url, signing_key_version, started_at,
      duration_ms, outcome)
    SELECT 'att_' || id, id, endpoint_id, 0, 2, 'https://192.0.2.1/', 1, now(), 1, 'connect' FROM webhook_deliveries`,
  'outcomes-proven': () => `UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now(), run_attempts = 1`,
  'deliveries-bounded': () =>
    `UPDATE webhook_deliveries SET status = 'failed', failure_reason = 'attempts_exhausted', completed_at = now()`,
  'rooms-in-order': () => `
    UPDATE webhook_deliveries SET status = 'delivering', lease_token = gen_random_uuid(), lease_expires_at = now()
    WHERE room_id = '${ids.live}'`,
  'tenants-apart': () => `UPDATE webhook_deliveries SET environment_id = 'env_other'`,
  'participants-in-their-room': () =>
    `UPDATE participant_sessions SET environment_id = 'env_other' WHERE participant_id = '${ids.participant}'`,
};

test.each([
  ['ended-rooms-empty', () => [ids.ended, 'recording', 'NULL']],
  ['recordings-worked-on', () => [ids.live, 'processing', 'now()']],
] as const)('the invariant "%s" finds a recording that nobody ends', async (name, recording) => {
  const [roomId, status, endedAt] = recording();
  const statement = `
    WITH recorded AS (UPDATE rooms SET recording_since = now() WHERE id = '${roomId}' AND '${status}' = 'recording')
    INSERT INTO recordings (id, environment_id, room_id, mode, audio_only, metadata, max_duration_seconds, status,
      started_at, ended_at)
    VALUES ('rec_1', '${rooms.tenant.environmentId}', '${roomId}', 'tracks', false, '{}', 60, '${status}', now(), ${endedAt})`;
  expect(await brokenBy(statement)).toEqual([[name, [roomId]]]);
});

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
      const [[broken, rows] = ['', []], ...others] = await brokenBy(BREAKS[name]!());
      expect([broken, others]).toEqual([name, []]);
      if (ROWS[name] === undefined) expect(rows).not.toEqual([]);
      else expect(rows).toEqual([ROWS[name]()]);
    },
  );

  test('look only at the newest rows', async () => {
    const results = await checkInvariants(rooms.database, 1);
    expect(results.map(({ checked }) => checked)).toEqual(INVARIANTS.map(() => 1));
  });
});
