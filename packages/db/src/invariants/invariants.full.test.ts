import { insertTestEndpoint } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { buffersOf } from '../client/statements.testkit.js';
import { Prisma } from '../generated/client.js';
import { startTestRooms } from '../sessions/sessions.testkit.js';
import { checkInvariants, queryOf } from './check-invariants.js';
import { INVARIANTS } from './invariants.js';

const DELIVERIES = 1_000_000;
const NEWEST = 1000;
const PART = 50_000;
/** As SETTINGS, which cannot be explained. */
const PLANNER = Prisma.sql`SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true)`;

test('the cost of the invariants is the same beside a million deliveries with their events and attempts', async () => {
  const rooms = await startTestRooms({ poolMax: 2 });
  const { database, tenant } = rooms;
  const long = new Date(Date.now() - 3_600_000);
  await insertTestEndpoint(database, tenant, { createdAt: long, updatedAt: long });
  const roomId = await rooms.newRoom();
  for (let n = 0; n < 20; n += 1) await rooms.enter(roomId);
  const fill = async (from: number, to: number): Promise<void> => {
    // Copies of one row each. Without foreign keys and triggers, which would take most of the time.
    await rooms.sql(`SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0;
      INSERT INTO events SELECT copy.* FROM (SELECT e AS v FROM events e WHERE type = 'participant.joined' LIMIT 1) one,
        generate_series(${from}, ${to}) i, jsonb_populate_record(v, jsonb_build_object('id', 'evt_' || lpad(i::text, 26, '0'),
          'room_id', 'room_' || lpad((i / 10)::text, 26, '0'), 'sequence', i % 10 + 1)) AS copy;
      INSERT INTO webhook_deliveries SELECT copy.* FROM (SELECT w AS d FROM webhook_deliveries w LIMIT 1) one,
        generate_series(${from}, ${to}) i, jsonb_populate_record(d, jsonb_build_object(
          'id', 'whd_' || lpad(i::text, 26, '0'), 'event_id', 'evt_' || lpad(i::text, 26, '0'), 'status', 'succeeded',
          'run_attempts', 1, 'completed_at', now())) AS copy;
      INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
          duration_ms, outcome, response_truncated)
        SELECT 'att_' || lpad(i::text, 26, '0'), 'whd_' || lpad(i::text, 26, '0'), 0, 1, 'https://192.0.2.1/', 1, now(), 1,
          'success', false
        FROM generate_series(${from}, ${to}) i`);
  };
  const cost = async (): Promise<Record<string, number>> => {
    await rooms.sql('ANALYZE events, webhook_deliveries, webhook_attempts');
    const buffers: Record<string, number> = {};
    for (const invariant of INVARIANTS) {
      buffers[invariant.name] = await buffersOf(database, async (sql) => {
        await sql.$queryRaw(PLANNER);
        await sql.$queryRaw(queryOf(invariant, NEWEST));
      });
    }
    return buffers;
  };
  await fill(1, NEWEST * 2);
  const before = await cost();
  // In parts: a statement that takes longer than the patience of tests is cancelled.
  for (let from = NEWEST * 2; from < DELIVERIES; from += PART) await fill(from + 1, Math.min(from + PART, DELIVERIES));
  const after = await cost();
  for (const { name } of INVARIANTS) {
    // Deeper indexes take a few pages more for each row.
    expect([name, after[name]! <= before[name]! * 2 + 10 * NEWEST]).toEqual([name, true]);
  }
  const results = await checkInvariants(database, NEWEST);
  expect(results.filter(({ checked }) => checked === null)).toEqual([]);
  console.log(
    `buffers of each invariant, of ${NEWEST} rows beside ${NEWEST * 2} and beside ${DELIVERIES}:`,
    Object.fromEntries(INVARIANTS.map(({ name }) => [name, `${before[name]} ${after[name]}`])),
  );
}, 1_800_000);

test('the cost of the sessions of one room grows with their number, also if one participant has them all', async () => {
  const rooms = await startTestRooms({ poolMax: 2 });
  const { database } = rooms;
  await rooms.enter(await rooms.newRoom());
  const invariant = INVARIANTS.find(({ name }) => name === 'sessions-reported-once')!;
  const fill = async (from: number, to: number): Promise<void> => {
    await rooms.sql(`SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0;
      INSERT INTO participant_sessions
        SELECT copy.* FROM (SELECT p AS s FROM participant_sessions p WHERE ended_at IS NULL) one,
        generate_series(${from}, ${to}) i, jsonb_populate_record(s, jsonb_build_object(
          'id', 'sess_' || lpad(i::text, 26, '0'), 'started_at', now(), 'ended_at', now(), 'end_reason', 'left')) AS copy;
      INSERT INTO events
        SELECT copy.* FROM (SELECT e AS v FROM events e WHERE type = 'participant.joined' LIMIT 1) one,
        generate_series(${from}, ${to}) i, (VALUES (0, 'participant.joined'), (1, 'participant.left')) AS kind (n, type),
        jsonb_populate_record(v, jsonb_build_object('id', 'evt_' || kind.n || lpad(i::text, 25, '0'), 'type', kind.type,
          'sequence', i * 2 + kind.n, 'created_at', now(),
          'body', json_build_object('data', json_build_object('sessionId', 'sess_' || lpad(i::text, 26, '0')))::text)) AS copy`);
    await rooms.sql('ANALYZE events, participant_sessions');
  };
  const cost = (): Promise<number> =>
    buffersOf(database, async (sql) => {
      await sql.$queryRaw(PLANNER);
      await sql.$queryRaw(queryOf(invariant, NEWEST));
    });
  await fill(10, 1000);
  const before = await cost();
  await fill(1001, 10_000);
  const after = await cost();
  console.log(`sessions-reported-once reads ${before} buffers for 1000 sessions of a room, ${after} for 10,000`);
  expect(after).toBeLessThan(before * 20);
  const results = await checkInvariants(database, NEWEST);
  const { checked, broken } = results.find((result) => result.invariant.name === invariant.name)!;
  expect([checked, broken]).toEqual([1, 0]);
});
