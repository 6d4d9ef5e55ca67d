import { RUN_AGE_MS_MAX } from '@callplane/core';
import {
  FULL_CHECK_MS,
  endDeliveriesOfDeleted,
  endExpiredLeases,
  expireRuns,
  firstLeaseExpiry,
  firstOldRun,
  freeParkedDeliveries,
  type LinePosition,
} from '@callplane/db';
import { logTransition, type Transition } from '@callplane/runtime';
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
  /** No lease expired earlier. Null is the first lease. */
  leasesFrom?: Date | null;
  /** When parked deliveries are next freed, in milliseconds of `performance.now()`. */
  parkedAtMs?: number;
  /** No open run started earlier. Null is the first run. */
  runsFrom?: Date | null;
  /** When leases and runs were last read from the first one on, in milliseconds of `performance.now()`. */
  checkedAtMs?: number;
}

/** Ends leases, runs and deliveries that no attempt will end. The scan (`deliveries/scan.ts`) finds due deliveries. */
export async function sweepDeliveries(deps: Deps, position: SweepPosition = { parkedFrom: null }): Promise<void> {
  const nowMs = performance.now();
  if (nowMs - (position.checkedAtMs ?? -Infinity) >= FULL_CHECK_MS) {
    Object.assign(position, { leasesFrom: null, runsFrom: null, checkedAtMs: nowMs });
  }
  await endLeases(deps, position);
  await endOldRuns(deps, position);
  await endRemoved(deps);
  await freeParked(deps, position);
}

async function endLeases(deps: Deps, position: SweepPosition): Promise<void> {
  const from = position.leasesFrom ?? null;
  let ended: number;
  do {
    const startedAtMs = performance.now();
    const rows = await endExpiredLeases(deps.database.sql, deps.leaseMs, BATCH, from);
    ended = rows.length;
    for (const { id, endpointId, runAttempts, exhausted } of rows) {
      const status = exhausted ? 'failed' : 'pending';
      noteSwept(deps, 'endLease', id, startedAtMs);
      deps.logger.error('delivery lease expired', { deliveryId: id, endpointId, attempt: runAttempts, status });
      deps.metrics.swept('lease_expired', 1);
      if (exhausted) deps.metrics.finished('failed', 'attempts_exhausted');
    }
    // Best effort: the scan finds deliveries whose wake-up fails.
    await deps.producer.wakeDeliveries(rows.filter(({ exhausted }) => !exhausted));
  } while (ended === BATCH);
  position.leasesFrom = await firstLeaseExpiry(deps.database.sql, from);
}

function noteSwept({ logger }: Deps, transition: Transition, row: string, sinceMs: number): void {
  logTransition(logger, transition, () => ({ subject: 'delivery', row, tookMs: performance.now() - sinceMs }));
}

async function endOldRuns(deps: Deps, position: SweepPosition): Promise<void> {
  const from = position.runsFrom ?? null;
  let ended: number;
  do {
    const startedAtMs = performance.now();
    const ids = await expireRuns(deps.database.sql, RUN_AGE_MS_MAX, BATCH, from);
    for (const id of ids) noteSwept(deps, 'expireRun', id, startedAtMs);
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
