import { DAY_MS, dayOf, type UsageDay } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
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
export async function rollUpUsage(db: TypedSql): Promise<number> {
  const [state] = await db.$queryRaw<{ last: Date | null; now: Date }[]>`
    SELECT max(day)::timestamp AT TIME ZONE 'UTC' AS last, now() AS now FROM usage_rollups`;
  if (state === undefined) return 0;
  const lastComplete = new Date(dayOf(new Date(state.now.getTime() - COMPLETE_AFTER_MS)).getTime() - DAY_MS);
  let day = state.last === null ? await firstDay(db, lastComplete) : new Date(state.last.getTime() + DAY_MS);
  let count = 0;
  for (; day <= lastComplete && count < DAYS_MAX; day = new Date(day.getTime() + DAY_MS)) {
    await rollUpDay(db, day, state.now);
    count += 1;
  }
  return count;
}

/** The first call reads the whole table for its oldest session; every later call continues after the last day. */
async function firstDay(db: TypedSql, latest: Date): Promise<Date> {
  const [row] = await db.$queryRaw<{ startedAt: Date | null }[]>`
    SELECT min(started_at) AS "startedAt" FROM participant_sessions`;
  const oldest = row?.startedAt ?? null;
  return oldest === null || oldest > latest ? latest : dayOf(oldest);
}

async function rollUpDay(db: TypedSql, day: Date, now: Date): Promise<void> {
  const environments = await db.$queryRaw<{ id: string }[]>`SELECT id FROM environments ORDER BY id`;
  for (const { id } of environments) {
    const [usage] = await computeUsage(db, id, [day], now);
    if (usage !== undefined && (usage.participantMs > 0 || usage.rooms > 0 || usage.deliveries > 0)) {
      await writeDay(db, id, usage);
    }
  }
  await db.$executeRaw`
    INSERT INTO usage_rollups (day) VALUES (${isoDay(day)}::date) ON CONFLICT DO NOTHING`;
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
