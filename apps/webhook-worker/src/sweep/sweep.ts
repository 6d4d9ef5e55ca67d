import { RUN_AGE_MS_MAX } from '@callplane/core';
import {
  BEGINNING,
  FULL_CHECK_MS,
  endDeliveriesOfDeleted,
  endExpiredLeases,
  expireRuns,
  firstLeaseExpiry,
  firstOldRun,
  freeParkedDeliveries,
  inSlices,
  type LinePosition,
  type TimeRange,
} from '@callplane/db';
import type { Deps } from '../deps.js';

/** Rows per batch. A full batch is followed by the next one at once. */
const BATCH = 500;
/** Batches per sweep that free parked deliveries. The next sweep continues where the last one ended. */
const PARKED_BATCHES_MAX = 4;

/** After a complete pass, freeing pauses for this many times the pass's last part, at most PARKED_PAUSE_MS_MAX milliseconds. */
const PARKED_PAUSE_FACTOR = 20;
const PARKED_PAUSE_MS_MAX = 10_000;

/** Where the next sweep continues. */
export interface SweepPosition {
  /** Null is the first line. */
  parkedFrom: LinePosition | null;
  /** No lease expired earlier, as of the last check. */
  leasesFrom?: Date;
  /** When parked deliveries are next freed, in milliseconds of `performance.now()`. */
  parkedAtMs?: number;
  /** No open run started earlier. Null is the first run. */
  runsFrom?: Date | null;
  /** When the last check of all leases and runs began, in milliseconds of `performance.now()`. */
  checkedAtMs?: number;
}

/**
 * Ends leases, runs and deliveries that no attempt will end. The scan (`deliveries/scan.ts`) finds due deliveries.
 * @param signal ends a check of all leases early.
 */
export async function sweepDeliveries(
  deps: Deps,
  position: SweepPosition = { parkedFrom: null },
  signal?: AbortSignal,
): Promise<void> {
  const nowMs = performance.now();
  const isCheck = nowMs - (position.checkedAtMs ?? -Infinity) >= FULL_CHECK_MS;
  if (isCheck) position.runsFrom = null;
  const isChecked = await endLeases(deps, position, isCheck, signal);
  await endOldRuns(deps, position);
  if (isChecked) position.checkedAtMs = nowMs;
  await endRemoved(deps);
  await freeParked(deps, position);
}

/**
 * Ends the leases that expired since the last sweep, and in a check all earlier ones.
 * @returns whether a check is complete.
 */
async function endLeases(
  deps: Deps,
  position: SweepPosition,
  isCheck: boolean,
  signal?: AbortSignal,
): Promise<boolean> {
  const from = position.leasesFrom ?? deps.clock.now();
  await endLeasesWithin(deps, { from });
  const end = (slice: TimeRange): Promise<void> => endLeasesWithin(deps, slice);
  const isChecked = isCheck && (await inSlices({ from: BEGINNING, until: from }, end, signal));
  position.leasesFrom = await firstLeaseExpiry(deps.database.sql, from);
  return isChecked;
}

async function endLeasesWithin(deps: Deps, range: Partial<TimeRange>): Promise<void> {
  let ended: number;
  do {
    const rows = await endExpiredLeases(deps.database.sql, deps.leaseMs, BATCH, range);
    ended = rows.length;
    for (const { id, endpointId, runAttempts, exhausted } of rows) {
      const status = exhausted ? 'failed' : 'pending';
      deps.logger.error('delivery lease expired', { deliveryId: id, endpointId, attempt: runAttempts, status });
      deps.metrics.swept('lease_expired', 1);
      if (exhausted) deps.metrics.finished('failed', 'attempts_exhausted');
    }
    // Best effort: the scan finds deliveries whose wake-up fails.
    await deps.producer.wakeDeliveries(rows.filter(({ exhausted }) => !exhausted));
  } while (ended === BATCH);
}

async function endOldRuns(deps: Deps, position: SweepPosition): Promise<void> {
  const from = position.runsFrom ?? null;
  let ended: number;
  do {
    const ids = await expireRuns(deps.database.sql, RUN_AGE_MS_MAX, BATCH, from);
    ended = ids.length;
    deps.metrics.swept('run_expired', ended);
    if (ended > 0) deps.metrics.finished('failed', 'run_expired', ended);
    if (ended > 0) deps.logger.warn('delivery runs expired', { count: ended, deliveryIds: ids.slice(0, 20) });
  } while (ended === BATCH);
  position.runsFrom = await firstOldRun(deps.database.sql, RUN_AGE_MS_MAX, from);
}

/**
 * Ends the deliveries of removed endpoints. It skips endpoints that were removed longer ago than the maximum age of a
 * run, because `endOldRuns` has already ended their deliveries.
 */
async function endRemoved(deps: Deps): Promise<void> {
  let ended: number;
  do {
    const ids = await endDeliveriesOfDeleted(deps.database.sql, RUN_AGE_MS_MAX, BATCH);
    ended = ids.length;
    deps.metrics.swept('endpoint_deleted', ended);
    if (ended > 0) deps.metrics.finished('failed', 'endpoint_deleted', ended);
    if (ended > 0) deps.logger.info('deliveries of removed endpoints ended', { count: ended });
  } while (ended === BATCH);
}

/**
 * Frees deliveries whose turn in their room has come, because one of the above has ended the delivery before them. The
 * pass reads every line that was parked since the oldest snapshot, so it pauses in proportion.
 */
async function freeParked(deps: Deps, position: SweepPosition): Promise<void> {
  const startedAtMs = performance.now();
  if (startedAtMs < (position.parkedAtMs ?? -Infinity)) return;
  for (let batch = 0; batch < PARKED_BATCHES_MAX; batch += 1) {
    const { freed, next } = await freeParkedDeliveries(deps.database.sql, position.parkedFrom, BATCH);
    position.parkedFrom = next;
    deps.metrics.swept('freed', freed.length);
    if (freed.length > 0) deps.logger.info('deliveries freed that waited for their turn', { count: freed.length });
    await deps.producer.wakeDeliveries(freed);
    if (next === null && freed.length < BATCH) break;
  }
  if (position.parkedFrom !== null) return;
  const endedAtMs = performance.now();
  position.parkedAtMs = endedAtMs + Math.min((endedAtMs - startedAtMs) * PARKED_PAUSE_FACTOR, PARKED_PAUSE_MS_MAX);
}
