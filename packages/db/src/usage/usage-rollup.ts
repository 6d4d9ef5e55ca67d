import { DAY_MS, dayOf, type UsageDay } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { computeUsage } from './usage.js';

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
export async function rollUpUsage(database: Database): Promise<number> {
  // The first call reads the whole table for its oldest session; every later call continues after the last day.
  const [state] = await database.sql.$queryRaw<[{ last: Date | null; oldest: Date | null; now: Date }]>`
    SELECT last, CASE WHEN last IS NULL THEN (SELECT min(started_at) FROM participant_sessions) END AS oldest,
      now() AS now
    FROM (SELECT max(day)::timestamp AT TIME ZONE 'UTC' AS last FROM usage_rollups) rollup`;
  const lastComplete = new Date(dayOf(new Date(state.now.getTime() - COMPLETE_AFTER_MS)).getTime() - DAY_MS);
  const first = state.oldest === null || state.oldest > lastComplete ? lastComplete : dayOf(state.oldest);
  let day = state.last === null ? first : new Date(state.last.getTime() + DAY_MS);
  let count = 0;
  for (; day <= lastComplete && count < DAYS_MAX; day = new Date(day.getTime() + DAY_MS)) {
    await rollUpDay(database, day, state.now);
    count += 1;
  }
  return count;
}

async function rollUpDay({ prisma, sql }: Database, day: Date, now: Date): Promise<void> {
  for (const { id } of await prisma.environment.findMany({ orderBy: { id: 'asc' }, select: { id: true } })) {
    const [usage] = await computeUsage(sql, id, [day], now);
    if (usage !== undefined && (usage.participantMs > 0 || usage.rooms > 0 || usage.deliveries > 0)) {
      await writeDay(sql, id, usage);
    }
  }
  await prisma.usageRollup.createMany({ data: [{ day }], skipDuplicates: true });
}

/**
 * A slow call must not overwrite the day after another call has finished it: the rooms may have been deleted meanwhile.
 */
async function writeDay(db: TypedSql, environmentId: string, usage: UsageDay): Promise<void> {
  const { rooms, participantMs, peakParticipants, measuredSessions, relayedSessions, deliveries } = usage;
  await db.$executeRaw`
    INSERT INTO usage_days (environment_id, day, rooms, participant_ms, peak_participants, measured_sessions,
      relayed_sessions, deliveries)
    SELECT ${environmentId}, ${isoDay(usage.day)}::date, ${rooms}::int, ${participantMs}::bigint,
      ${peakParticipants}::int, ${measuredSessions}::int, ${relayedSessions}::int, ${deliveries}::int
    WHERE NOT EXISTS (SELECT 1 FROM usage_rollups WHERE day = ${isoDay(usage.day)}::date)
    ON CONFLICT (environment_id, day) DO UPDATE SET rooms = excluded.rooms, participant_ms = excluded.participant_ms,
      peak_participants = excluded.peak_participants, measured_sessions = excluded.measured_sessions,
      relayed_sessions = excluded.relayed_sessions, deliveries = excluded.deliveries`;
}

function isoDay(day: Date): string {
  return day.toISOString().slice(0, 10);
}
