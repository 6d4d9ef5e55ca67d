import { purgeExpiredRooms } from '@callplane/db';
import { pause } from '@callplane/runtime';
import type { Deps } from '../deps.js';
import type { Purged } from '../metrics.js';

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
