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

/** Retention begins anew at the oldest rows after this time, in milliseconds: it may have skipped locked ones. */
const FROM_START_EVERY_MS = 3_600_000;

/** Where the next sweep continues. */
export interface RetentionPosition {
  deliveriesFrom: Date | null;
  eventsFrom: EventsCursor;
  /** When it last began at the oldest rows, in milliseconds of `performance.now()`. */
  beganAtMs: number;
}

type EventsCursor = Awaited<ReturnType<typeof deleteOldEvents>>['next'];

export const newRetentionPosition = (): RetentionPosition => ({
  deliveriesFrom: null,
  eventsFrom: null,
  beganAtMs: -Infinity,
});

/** Deletes rows past their retention, in batches that hold no lock for long. */
export async function sweepRetention(
  { database, logger, metrics }: Deps,
  signal: AbortSignal,
  position = newRetentionPosition(),
): Promise<void> {
  const db = database.sql;
  const nowMs = performance.now();
  if (nowMs - position.beganAtMs >= FROM_START_EVERY_MS) {
    Object.assign(position, newRetentionPosition(), { beganAtMs: nowMs });
  }
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
    deliveries: await all(async () => {
      const batch = await deleteOldDeliveries(db, TERMINAL_RETENTION_DAYS, BATCH, position.deliveriesFrom);
      position.deliveriesFrom = batch.next ?? position.deliveriesFrom;
      return batch.deleted;
    }),
    recoveries: await all(() => deleteOldRecoveries(db, TERMINAL_RETENTION_DAYS, BATCH)),
    endpoints: await all(() => deleteEmptyEndpoints(db, TERMINAL_RETENTION_DAYS, BATCH)),
    secrets: await all(() => deleteUnusedSecrets(db, BATCH)),
    events: 0,
  };
  let isMore: boolean;
  do {
    const batch = await deleteOldEvents(db, TERMINAL_RETENTION_DAYS, BATCH, position.eventsFrom);
    deleted.events += batch.deleted;
    position.eventsFrom = batch.next ?? position.eventsFrom;
    isMore = batch.isMore;
  } while (isMore && !signal.aborted);
  for (const [what, count] of Object.entries(deleted)) metrics.purged(what as keyof typeof deleted, count);
  if (Object.values(deleted).some((count) => count > 0)) logger.info('retention', deleted);
}
