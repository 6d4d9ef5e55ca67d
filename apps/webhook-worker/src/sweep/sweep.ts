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

async function endLeases(deps: Deps): Promise<void> {
  let ended: number;
  do {
    const rows = await endExpiredLeases(deps.database.sql, deps.leaseMs, BATCH);
    ended = rows.length;
    logEndedLeases(deps, rows);
    // Best effort: the scan finds deliveries whose wake-up fails.
    await deps.producer.wakeDeliveries(rows.filter(({ exhausted }) => !exhausted));
  } while (ended === BATCH);
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

async function endOldRuns({ database, metrics, logger }: Deps): Promise<void> {
  let ended: number;
  do {
    const ids = await expireRuns(database.sql, RUN_AGE_MS_MAX, BATCH);
    ended = ids.length;
    metrics.swept('run_expired', ended);
    if (ended > 0) metrics.finished('failed', 'run_expired', ended);
    if (ended > 0) logger.warn('delivery runs expired', { count: ended, deliveryIds: ids.slice(0, 20) });
  } while (ended === BATCH);
}

/**
 * Ends the deliveries of removed endpoints. It skips endpoints that were removed longer ago than the maximum age of a
 * run, because `endOldRuns` has already ended their deliveries.
 */
async function endRemoved({ database, metrics, logger }: Deps): Promise<void> {
  let ended: number;
  do {
    const ids = await endDeliveriesOfDeleted(database.sql, RUN_AGE_MS_MAX, BATCH);
    ended = ids.length;
    metrics.swept('endpoint_deleted', ended);
    if (ended > 0) metrics.finished('failed', 'endpoint_deleted', ended);
    if (ended > 0) logger.info('deliveries of removed endpoints ended', { count: ended });
  } while (ended === BATCH);
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
