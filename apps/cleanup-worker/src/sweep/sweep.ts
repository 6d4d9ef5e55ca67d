import {
  completeErasures,
  deleteExpiredConsoleSessions,
  deleteExpiredIdempotencyRecords,
  deleteExpiredSigningKeys,
  eraseEvents,
  purgeExpiredRooms,
  rollUpUsage,
} from '@callplane/db';
import { pause } from '@callplane/runtime';
import type { Deps } from '../deps.js';
import type { Purged } from '../metrics.js';

/** Rows per batch. A full batch is followed by the next one at once. */
const BATCH = 500;

export async function sweepExpired({ database, clock, metrics }: Deps): Promise<void> {
  const now = clock.now();
  let deleted: number;
  do {
    deleted = await deleteExpiredIdempotencyRecords(database.sql, now, BATCH);
    metrics.purged('idempotency_records', deleted);
  } while (deleted === BATCH);
  metrics.purged('console_sessions', await deleteExpiredConsoleSessions(database.sql, now));
  await deleteExpiredSigningKeys(database.sql, now);
}

/** Erases personal data from events whose deliveries were still running when the erasure was requested. */
export async function sweepErasures({ database, clock, metrics, logger }: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const events = await eraseEvents(database, null, clock.now());
    if (events === 0) break;
    metrics.purged('erased_events', events);
    logger.info('events erased', { events });
  }
  const completed = await completeErasures(database);
  if (completed > 0) logger.info('erasures completed', { participants: completed });
}

/** Pause between two steps, in milliseconds, so that a backlog of years does not slow down requests. */
const PAUSE_MS = 100;
const DAY_SECONDS = 24 * 60 * 60;

/** Deletes rooms that ended at least `retentionDays` days ago, with all their rows. With 0 it deletes nothing. */
export async function sweepRooms(deps: Deps, retentionDays: number, signal: AbortSignal): Promise<void> {
  if (retentionDays === 0) return;
  const which = { olderThanSeconds: retentionDays * DAY_SECONDS, environmentId: null };
  while (!signal.aborted) {
    const step = await purgeExpiredRooms(deps.database, which);
    // Any remaining rows are locked by other transactions; the next sweep finds them.
    if (Object.values(step).every((count: number) => count === 0)) return;
    for (const [what, count] of Object.entries(step)) deps.metrics.purged(what as Purged, count as number);
    deps.logger.info('rooms purged', { ...step, retentionDays });
    await pause(PAUSE_MS, signal);
  }
}

/** Rolls up the usage of days that are complete. Almost every call finds none. */
export async function sweepUsage({ database, logger }: Deps): Promise<void> {
  const days = await rollUpUsage(database.sql);
  if (days > 0) logger.info('usage rolled up', { days });
}
