import { TERMINAL_RETENTION_DAYS } from '@callplane/core';
import {
  deleteEmptyEndpoints,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteOldRecoveries,
  deleteUnusedSecrets,
} from '@callplane/db';
import type { Deps } from '../deps.js';

/** Rows per statement, so that it holds its locks for only a few milliseconds. */
const BATCH = 500;

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
