import { RUN_AGE_MS_MAX } from '@callplane/core';
import {
  endDeliveriesOfRemoved,
  endExpiredLeases,
  expireRuns,
  takeUnwokenDeliveries,
  touchDeliveries,
  type WakeableDelivery,
} from '@callplane/db';
import type { Deps } from '../deps.js';

/**
 * How long a due row may go unanswered after its last wake-up, in milliseconds. With the sweep's interval (5 s) a row
 * whose job was lost is woken within 13 s of being due; the decision for everything durable is 15.
 */
const QUIET_MS = 8000;
/** Rows of one sweep; the next one follows at once while there are that many. */
const BATCH = 500;
/** Jobs that wait already: above this the workers are behind, not Redis forgetful. */
const BACKLOG_MAX = 1000;

/**
 * The guarantee behind the alarm clock.
 * @param known deliveries that wait in this worker's memory or that it has postponed: they are not forgotten.
 */
export async function sweepDeliveries(deps: Deps, known: readonly string[]): Promise<void> {
  if (known.length > 0) await touchDeliveries(deps.claims.prisma, known);
  await endLeases(deps);
  await endOldRuns(deps);
  await endRemoved(deps);
  await wakeForgotten(deps);
}

async function endLeases(deps: Deps): Promise<void> {
  let ended: number;
  do {
    const rows = await endExpiredLeases(deps.database.prisma, deps.leaseMs, BATCH);
    ended = rows.length;
    for (const { id, endpointId, runAttempts, exhausted } of rows) {
      const status = exhausted ? 'failed' : 'pending';
      deps.logger.error('delivery lease expired', { deliveryId: id, endpointId, attempt: runAttempts, status });
      deps.metrics.swept('lease_expired', 1);
      if (exhausted) deps.metrics.finished('failed', 'attempts_exhausted');
    }
    await wake(
      deps,
      rows.filter(({ exhausted }) => !exhausted),
    );
  } while (ended === BATCH);
}

async function endOldRuns(deps: Deps): Promise<void> {
  let ended: number;
  do {
    const ids = await expireRuns(deps.database.prisma, RUN_AGE_MS_MAX, BATCH);
    ended = ids.length;
    deps.metrics.swept('run_expired', ended);
    if (ended > 0) deps.metrics.finished('failed', 'run_expired', ended);
    if (ended > 0) deps.logger.warn('delivery runs expired', { count: ended, deliveryIds: ids.slice(0, 20) });
  } while (ended === BATCH);
}

/** What is older than a run may be has ended anyway. */
async function endRemoved(deps: Deps): Promise<void> {
  let ended: number;
  do {
    const ids = await endDeliveriesOfRemoved(deps.database.prisma, RUN_AGE_MS_MAX, BATCH);
    ended = ids.length;
    deps.metrics.swept('endpoint_deleted', ended);
    if (ended > 0) deps.metrics.finished('failed', 'endpoint_deleted', ended);
    if (ended > 0) deps.logger.info('deliveries of removed endpoints ended', { count: ended });
  } while (ended === BATCH);
}

async function wakeForgotten(deps: Deps): Promise<void> {
  let taken: number;
  do {
    // Rows are marked as woken when they are taken, so they are taken only when the wake-up can be sent.
    if (!(await canSend(deps))) return;
    const rows = await takeUnwokenDeliveries(deps.database.prisma, QUIET_MS, BATCH);
    taken = rows.length;
    if (taken === 0) return;
    const sent = await wake(deps, rows);
    deps.metrics.swept('woken', taken);
    deps.logger.warn('deliveries woken by sweep', {
      count: taken,
      sent,
      deliveryIds: rows.slice(0, 20).map(({ id }) => id),
    });
  } while (taken === BATCH);
}

/** Sends wake-ups; what cannot be sent is found by a later sweep. */
export async function wake(deps: Deps, rows: readonly WakeableDelivery[]): Promise<boolean> {
  if (rows.length === 0) return true;
  const sent = await deps.producer.wakeAll(rows.map((row) => ({ queue: 'webhook-delivery', row })));
  return sent.ok;
}

async function canSend(deps: Deps): Promise<boolean> {
  try {
    return (await deps.producer.waitingCount(['webhook-delivery'])) < BACKLOG_MAX;
  } catch (error) {
    deps.logger.warn('sweep waits for Redis', { error });
    return false;
  }
}
