import { DAY_MS, dayOf, daysBetween, firstIdAt, noUsage, type Tenant, type UsageDay } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** 64 bits, in decimal, because node-postgres gives them so. */
type SessionUsage = Omit<UsageDay, keyof RecordingUsage>;
type UsageRow = Omit<SessionUsage, 'participantMs'> & { participantMs: string };
export type RecordingUsage = Pick<UsageDay, 'recordedMs' | 'convertedMs' | 'recordedBytes'>;

/**
 * The usage of the tenant by UTC day, the first and the last one included. Days that are rolled up are read, later ones
 * are computed from the sessions. Days after `now` have no usage.
 */
export async function readUsage(
  db: TypedSql,
  { environmentId }: Tenant,
  first: Date,
  last: Date,
  now: Date,
): Promise<UsageDay[]> {
  const [rollup] = await db.$queryRaw<{ until: Date | null }[]>`SELECT ${ROLLED_UP_UNTIL} AS until`;
  const stored = await db.$queryRaw<UsageRow[]>`
    SELECT day::timestamp AT TIME ZONE 'UTC' AS day, rooms, participant_ms AS "participantMs",
      peak_participants AS "peakParticipants", measured_sessions AS "measuredSessions",
      relayed_sessions AS "relayedSessions", deliveries
    FROM usage_days
    WHERE environment_id = ${environmentId} AND day BETWEEN ${dateOf(first)}::date AND ${dateOf(last)}::date`;
  const begin = new Date(Math.max(first.getTime(), rollup?.until?.getTime() ?? 0));
  const end = new Date(Math.min(last.getTime(), dayOf(now).getTime()));
  const days = daysBetween(begin, end);
  const computed = days.length === 0 ? [] : await computeUsage(db, environmentId, days, now);
  const recorded = await db.$queryRaw<(RecordingUsage & { day: Date })[]>`
    SELECT day::timestamp AT TIME ZONE 'UTC' AS day, recorded_ms::float8 AS "recordedMs",
      converted_ms::float8 AS "convertedMs", bytes::float8 AS "recordedBytes"
    FROM usage_recordings
    WHERE environment_id = ${environmentId} AND day BETWEEN ${dateOf(first)}::date AND ${dateOf(last)}::date`;
  const byDay = new Map([...stored, ...computed].map((row) => [row.day.getTime(), toUsage(row)]));
  const recordedOn = new Map(recorded.map((row) => [row.day.getTime(), row]));
  return daysBetween(first, last).map((day) => {
    return { ...noUsage(day), ...byDay.get(day.getTime()), ...recordedOn.get(day.getTime()) };
  });
}

/**
 * Computes the usage of consecutive days from the sessions. A session that is still open counts until `now`. The cost
 * grows with the sessions that have not ended before the first day, and with the deliveries of the days.
 */
function usageOf(environmentId: string, days: readonly Date[], now: Date): Prisma.Sql {
  const ends = days.map((day) => new Date(day.getTime() + DAY_MS));
  const [first, end] = [Math.min(...days.map(Number)), Math.max(...ends.map(Number))].map((at) =>
    new Date(at).toISOString(),
  );
  return Prisma.sql`
    WITH day AS (
      SELECT * FROM unnest(${days.map((day) => day.toISOString())}::timestamptz[],
        ${ends.map((day) => day.toISOString())}::timestamptz[], ${days.map((day) => firstIdAt('delivery', day))}::text[],
        ${ends.map((day) => firstIdAt('delivery', day))}::text[]) AS day (start, stop, first_id, end_id)
    ), session AS MATERIALIZED (
      SELECT id, room_id, started_at, ended_at, relayed_seconds > 0 AS relayed,
        good_seconds + fair_seconds + poor_seconds + lost_seconds > 0 AS measured
      FROM participant_sessions
      WHERE environment_id = ${environmentId} AND NOT waiting AND ended_at > ${first}::timestamptz
        AND started_at < ${end}::timestamptz
      UNION ALL
      SELECT id, room_id, started_at, ${now.toISOString()}::timestamptz, relayed_seconds > 0,
        good_seconds + fair_seconds + poor_seconds + lost_seconds > 0
      FROM participant_sessions
      WHERE environment_id = ${environmentId} AND NOT waiting AND ended_at IS NULL
        AND started_at < least(${end}::timestamptz, ${now.toISOString()}::timestamptz)
    ), part AS MATERIALIZED (
      SELECT day.start, session.room_id, session.relayed, session.measured,
        greatest(session.started_at, day.start) AS begins_at, least(session.ended_at, day.stop) AS ends_at
      FROM day JOIN session ON session.started_at < day.stop AND session.ended_at > day.start
    ), total AS (
      SELECT start, count(DISTINCT room_id)::int AS rooms,
        (sum(extract(epoch FROM ends_at - begins_at)) * 1000)::bigint AS ms,
        count(*) FILTER (WHERE measured)::int AS measured, count(*) FILTER (WHERE measured AND relayed)::int AS relayed
      FROM part GROUP BY start
    ), present AS (
      -- At the same instant, ends come before starts: a session that supersedes another one does not add to it.
      SELECT start, sum(step) OVER (PARTITION BY start ORDER BY at, step ROWS UNBOUNDED PRECEDING) AS count FROM (
        SELECT start, begins_at AS at, 1 AS step FROM part UNION ALL SELECT start, ends_at, -1 FROM part
      ) edge
    ), peak AS (
      SELECT start, max(count)::int AS count FROM present GROUP BY start
    )
    SELECT day.start AS day, coalesce(total.rooms, 0) AS rooms, coalesce(total.ms, 0) AS "participantMs",
      coalesce(peak.count, 0) AS "peakParticipants", coalesce(total.measured, 0) AS "measuredSessions",
      coalesce(total.relayed, 0) AS "relayedSessions", (
        SELECT coalesce(sum(sent.count), 0)::int
        FROM webhook_endpoints e CROSS JOIN LATERAL (
          SELECT count(*) AS count FROM webhook_deliveries d
          WHERE d.endpoint_id = e.id AND d.id >= day.first_id AND d.id < day.end_id
        ) sent
        WHERE e.environment_id = ${environmentId}
      ) AS deliveries
    FROM day LEFT JOIN total ON total.start = day.start LEFT JOIN peak ON peak.start = day.start
    ORDER BY day.start`;
}

function computeUsage(db: TypedSql, environmentId: string, days: Date[], now: Date): PromiseLike<UsageRow[]> {
  return db.$queryRaw<UsageRow[]>`SELECT * FROM (${usageOf(environmentId, days, now)}) computed`;
}

const dateOf = (day: Date): string => day.toISOString().slice(0, 10);

function toUsage({ participantMs, ...usage }: UsageRow): SessionUsage {
  return { ...usage, participantMs: Number(participantMs) };
}

/** Adds to a day. Call it after the room was locked: then transactions cannot wait for one another in a circle. */
export async function addRecordingUsage(
  tx: TypedSql,
  { environmentId }: Pick<Tenant, 'environmentId'>,
  { recordedMs = 0, convertedMs = 0, recordedBytes = 0 }: Partial<RecordingUsage>,
  now: Date,
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO usage_recordings AS u (environment_id, day, recorded_ms, converted_ms, bytes)
    VALUES (${environmentId}, ${dateOf(now)}::date, ${recordedMs}::bigint, ${convertedMs}::bigint,
      ${recordedBytes}::bigint)
    ON CONFLICT (environment_id, day) DO UPDATE SET recorded_ms = u.recorded_ms + excluded.recorded_ms,
      converted_ms = u.converted_ms + excluded.converted_ms, bytes = u.bytes + excluded.bytes`;
}

/**
 * Roll-ups of usage: each complete UTC day is computed once for every environment and kept, so that it outlives the
 * rooms. A day is complete an hour after its end, by PostgreSQL's clock, because the clocks of apps write the sessions.
 */

const COMPLETE_AFTER_MS = 60 * 60 * 1000;
/** Days per call, so that a call ends. */
const DAYS_MAX = 400;

/** The end of the last day that is rolled up, as a subquery. */
export const ROLLED_UP_UNTIL = Prisma.sql`(SELECT (max(day) + 1)::timestamp AT TIME ZONE 'UTC' FROM usage_rollups)`;

/**
 * Rolls up the days that are complete. Concurrent calls and repetitions after a crash write the same rows.
 * @returns the number of days.
 */
export async function rollUpUsage(db: TypedSql): Promise<number> {
  // The first call reads the whole table for its oldest session; every later call continues after the last day.
  const [state] = await db.$queryRaw<[{ last: Date | null; oldest: Date | null; now: Date }]>`
    SELECT last, CASE WHEN last IS NULL THEN (SELECT min(started_at) FROM participant_sessions) END AS oldest,
      now() AS now
    FROM (SELECT max(day)::timestamp AT TIME ZONE 'UTC' AS last FROM usage_rollups) rollup`;
  const lastComplete = new Date(dayOf(new Date(state.now.getTime() - COMPLETE_AFTER_MS)).getTime() - DAY_MS);
  const first = state.oldest === null || state.oldest > lastComplete ? lastComplete : dayOf(state.oldest);
  let day = state.last === null ? first : new Date(state.last.getTime() + DAY_MS);
  let count = 0;
  for (; day <= lastComplete && count < DAYS_MAX; day = new Date(day.getTime() + DAY_MS)) {
    await rollUpDay(db, day, state.now);
    count += 1;
  }
  return count;
}

async function rollUpDay(db: TypedSql, day: Date, now: Date): Promise<void> {
  const date = Prisma.sql`${dateOf(day)}::date`;
  for (const { id } of await db.$queryRaw<{ id: string }[]>`SELECT id FROM environments ORDER BY id`) {
    // A row that is there stays: a slow call must not overwrite a finished day, whose rooms may have been deleted.
    await db.$executeRaw`
      INSERT INTO usage_days (environment_id, day, rooms, participant_ms, peak_participants, measured_sessions,
        relayed_sessions, deliveries)
      SELECT ${id}, ${date}, rooms, "participantMs", "peakParticipants", "measuredSessions", "relayedSessions",
        deliveries
      FROM (${usageOf(id, [day], now)}) computed
      WHERE "participantMs" > 0 OR rooms > 0 OR deliveries > 0
      ON CONFLICT DO NOTHING`;
  }
  await db.$executeRaw`INSERT INTO usage_rollups (day) VALUES (${date}) ON CONFLICT DO NOTHING`;
}
