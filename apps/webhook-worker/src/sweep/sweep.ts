import { RECOVERY_PACE, RUN_AGE_MS_MAX, TERMINAL_RETENTION_DAYS } from '@callplane/core';
import {
  endDeliveriesOfDeleted,
  type EndedLease,
  endExpiredLeases,
  expireRuns,
  stepRecovery,
  countEndpointsFailing,
  disableFailingEndpoint,
  findFailingEndpoints,
  reportEndpoints,
  deleteEmptyEndpoints,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteOldRecoveries,
  deleteUnusedSecrets,
} from '@callplane/db';
import { LRUCache } from 'lru-cache';
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

const DAY_MS = 24 * 60 * 60 * 1000;
/** Endpoints with a logged warning that a worker remembers. A forgotten one is warned of again. */
const WARNED_MAX = 10_000;

/**
 * Reports endpoints that only fail. Disables endpoints whose attempts have all failed for `disableAfterDays` days, and
 * warns after half of that time.
 */
export class FailingEndpoints {
  /** Start of the failure in Unix milliseconds, by the id of each endpoint with a logged warning. */
  readonly #warned = new LRUCache<string, number>({ max: WARNED_MAX });

  /** @param disableAfterDays with 0, no endpoint is disabled, or warned that it will be. */
  constructor(
    private readonly deps: Deps,
    private readonly disableAfterDays: number,
  ) {}

  /** Reports and disables. One worker does. */
  async sweep(): Promise<void> {
    await this.#report();
    await this.#disable();
  }

  /** Sets the metric. Every worker does. */
  async count(): Promise<void> {
    const { database, metrics } = this.deps;
    metrics.setEndpointsFailing(await countEndpointsFailing(database.sql));
  }

  /** Logs the beginning and the end of each failure, and sends an event of it. */
  async #report(): Promise<void> {
    const { database, logger, producer, clock } = this.deps;
    for (;;) {
      const { failing, recovered, deliveries } = await reportEndpoints(database, clock.now());
      for (const { id, environmentId, failingSince } of failing) {
        logger.warn('webhook endpoint fails', { endpointId: id, environmentId, failingSince });
      }
      for (const { id, environmentId, failingSince } of recovered) {
        logger.info('webhook endpoint works again', { endpointId: id, environmentId, failingSince });
      }
      await producer.wakeDeliveries(deliveries);
      if (failing.length + recovered.length === 0) return;
    }
  }

  async #disable(): Promise<void> {
    const days = this.disableAfterDays;
    if (days === 0) return;
    const { database, logger, metrics, clock } = this.deps;
    const forMs = days * DAY_MS;
    for (const { id, environmentId } of await findFailingEndpoints(database.sql, forMs, BATCH)) {
      const reason = `Every attempt has failed for ${days} ${days === 1 ? 'day' : 'days'}.`;
      const deliveries = await disableFailingEndpoint(database, id, forMs, reason, clock.now());
      if (deliveries === null) continue;
      logger.error('webhook endpoint disabled', { endpointId: id, environmentId, disableAfterDays: days });
      metrics.endpointDisabled();
      await this.deps.producer.wakeDeliveries(deliveries);
    }
    const failing = await findFailingEndpoints(database.sql, forMs / 2, BATCH);
    for (const { id, environmentId, failingSince } of failing) {
      if (this.#warned.get(id) === failingSince.getTime()) continue;
      this.#warned.set(id, failingSince.getTime());
      const fields = { endpointId: id, environmentId, failingSince, disableAfterDays: days };
      logger.warn('webhook endpoint fails and will be disabled', fields);
      metrics.disableWarning();
    }
  }
}

/** Rows per statement, so that it holds its locks for only a few milliseconds. */

type OldEvents = Awaited<ReturnType<typeof deleteOldEvents>>;

/** Deletes rows past their retention, in batches that hold no lock for long. */
export async function sweepRetention({ database, logger, metrics }: Deps, signal: AbortSignal): Promise<void> {
  const db = database.sql;
  const all = async (remove: () => PromiseLike<number>): Promise<number> => {
    let total = 0;
    let deleted: number;
    do {
      deleted = await remove();
      total += deleted;
    } while (deleted === BATCH && !signal.aborted);
    return total;
  };
  // A batch begins where the last one ended: an old snapshot keeps the rows that it deleted in the index.
  let deliveriesFrom: Date | null = null;
  const deleted = {
    deliveries: await all(async () => {
      const batch = await deleteOldDeliveries(db, TERMINAL_RETENTION_DAYS, BATCH, deliveriesFrom);
      deliveriesFrom = batch.next;
      return batch.deleted;
    }),
    recoveries: await all(() => deleteOldRecoveries(db, TERMINAL_RETENTION_DAYS, BATCH)),
    endpoints: await all(() => deleteEmptyEndpoints(db, TERMINAL_RETENTION_DAYS, BATCH)),
    secrets: await all(() => deleteUnusedSecrets(db, BATCH)),
    events: 0,
  };
  let eventsFrom: OldEvents['next'] = null;
  let isMore: boolean;
  do {
    const batch: OldEvents = await deleteOldEvents(db, TERMINAL_RETENTION_DAYS, BATCH, eventsFrom);
    deleted.events += batch.deleted;
    eventsFrom = batch.next;
    isMore = batch.isMore;
  } while (isMore && !signal.aborted);
  for (const [what, count] of Object.entries(deleted)) metrics.purged(what as keyof typeof deleted, count);
  if (Object.values(deleted).some((count) => count > 0)) logger.info('retention', deleted);
}
