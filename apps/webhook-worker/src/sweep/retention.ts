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
  const deleted = {
    deliveries: await all(() => deleteOldDeliveries(db, TERMINAL_RETENTION_DAYS, BATCH)),
    recoveries: await all(() => deleteOldRecoveries(db, TERMINAL_RETENTION_DAYS, BATCH)),
    endpoints: await all(() => deleteEmptyEndpoints(db, TERMINAL_RETENTION_DAYS, BATCH)),
    secrets: await all(() => deleteUnusedSecrets(db, BATCH)),
    events: 0,
  };
  let from: Awaited<ReturnType<typeof deleteOldEvents>>['next'] = null;
  do {
    const batch = await deleteOldEvents(db, TERMINAL_RETENTION_DAYS, BATCH, from);
    deleted.events += batch.deleted;
    from = batch.next;
  } while (from !== null && !signal.aborted);
  for (const [what, count] of Object.entries(deleted)) metrics.purged(what as keyof typeof deleted, count);
  if (Object.values(deleted).some((count) => count > 0)) logger.info('retention', deleted);
}
