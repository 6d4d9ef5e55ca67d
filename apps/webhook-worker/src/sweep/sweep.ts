import { RECOVERY_PACE, RUN_AGE_MS_MAX } from '@callplane/core';
import { endDeliveriesOfDeleted, type EndedLease, endExpiredLeases, expireRuns, stepRecovery } from '@callplane/db';
import type { Deps } from '../deps.js';

/** Rows per batch. A full batch is followed by the next one at once. */
const BATCH = 500;

/** Ends leases, runs and deliveries that no attempt will end. The scan (`deliveries/scan.ts`) finds due deliveries. */
export async function sweepDeliveries(deps: Deps): Promise<void> {
  await endLeases(deps);
  await endOldRuns(deps);
  await endRemoved(deps);
}

/** @param step returns the number of rows of its batch. */
async function inBatches(step: () => Promise<number>): Promise<void> {
  while ((await step()) === BATCH);
}

function endLeases(deps: Deps): Promise<void> {
  return inBatches(async () => {
    const rows = await endExpiredLeases(deps.database.sql, deps.leaseMs, BATCH);
    logEndedLeases(deps, rows);
    // Best effort: the scan finds deliveries whose wake-up fails.
    await deps.producer.wakeDeliveries(rows.filter(({ exhausted }) => !exhausted));
    return rows.length;
  });
}

export function logEndedLeases(
  { logger, metrics }: Pick<Deps, 'logger' | 'metrics'>,
  rows: readonly EndedLease[],
): void {
  for (const { id, endpointId, runAttempts, exhausted } of rows) {
    const status = exhausted ? 'failed' : 'pending';
    logger.error('delivery lease expired', { deliveryId: id, endpointId, attempt: runAttempts, status });
    metrics.swept('lease_expired', 1);
    if (exhausted) metrics.finished('failed', 'attempts_exhausted');
  }
}

function endOldRuns({ database, metrics, logger }: Deps): Promise<void> {
  return inBatches(async () => {
    const ids = await expireRuns(database.sql, RUN_AGE_MS_MAX, BATCH);
    metrics.swept('run_expired', ids.length);
    metrics.finished('failed', 'run_expired', ids.length);
    if (ids.length > 0) logger.warn('delivery runs expired', { count: ids.length, deliveryIds: ids.slice(0, 20) });
    return ids.length;
  });
}

/**
 * Ends the deliveries of removed endpoints. It skips endpoints that were removed longer ago than the maximum age of a
 * run, because `endOldRuns` has already ended their deliveries.
 */
function endRemoved({ database, metrics, logger }: Deps): Promise<void> {
  return inBatches(async () => {
    const { length: count } = await endDeliveriesOfDeleted(database.sql, RUN_AGE_MS_MAX, BATCH);
    metrics.swept('endpoint_deleted', count);
    metrics.finished('failed', 'endpoint_deleted', count);
    if (count > 0) logger.info('deliveries of removed endpoints ended', { count });
    return count;
  });
}

/** Runs one step of every recovery whose pause has passed. */
export async function sweepRecoveries(
  deps: Pick<Deps, 'database' | 'producer' | 'logger'>,
  signal: AbortSignal,
  paceMs = RECOVERY_PACE.paceMs,
): Promise<void> {
  while (!signal.aborted) {
    const step = await stepRecovery(deps.database, { ...RECOVERY_PACE, paceMs });
    if (step === null) return;
    const { wake, ...fields } = step;
    await deps.producer.wakeDeliveries(wake);
    deps.logger.info('recovery step', fields);
  }
}
