import {
  deleteExpiredIdempotencyRecords,
  deleteExpiredSigningKeys,
  settleExhaustedOperation,
  takeUnwokenOperations,
} from '@callplane/db';
import { publishNotice, QUEUE_OF_OPERATION } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { wake, writeOperationFailed } from '../operations/events.js';

/**
 * How long a due row may go unanswered after its last wake-up, in milliseconds. With the sweep's interval (5 s) a row
 * whose job was lost is woken within 13 s of being due; the decision is 15.
 */
const QUIET_MS = 8000;
/** Rows of one sweep; the next one follows at once while there are that many. */
const BATCH = 500;
/**
 * Jobs that wait already. Above this the workers are behind, not Redis forgetful: waking the same rows again would
 * only make the queue longer.
 */
const BACKLOG_MAX = 1000;

/** The guarantee behind the alarm clock: runs on a timer of this process, which no Redis can forget. */
export async function sweepOperations(deps: Deps): Promise<void> {
  await settleExhausted(deps);
  await wakeForgotten(deps);
}

async function settleExhausted(deps: Deps): Promise<void> {
  for (;;) {
    // One by one, because each writes an event and with it locks its room.
    const settled = await deps.database.transaction(async (tx) => {
      const operation = await settleExhaustedOperation(tx);
      if (operation === null) return null;
      return { operation, deliveries: await writeOperationFailed(tx, operation, operation, deps.clock.now()) };
    });
    if (settled === null) return;
    deps.logger.error('operation settled by sweep', { operationId: settled.operation.id, outcome: 'failed' });
    deps.metrics.swept(settled.operation.kind, 'exhausted');
    await wake(deps, settled.deliveries);
    await publishNotice(deps.producer.redis, 'operationSettled', settled.operation.id);
  }
}

async function wakeForgotten(deps: Deps): Promise<void> {
  let taken: number;
  do {
    // Rows are marked as woken when they are taken, so they are taken only when the wake-up can be sent.
    if (!(await canSend(deps))) return;
    const rows = await takeUnwokenOperations(deps.database.prisma, QUIET_MS, BATCH);
    taken = rows.length;
    if (taken === 0) return;
    for (const { kind } of rows) deps.metrics.swept(kind, 'woken');
    const sent = await deps.producer.wakeAll(rows.map((row) => ({ queue: QUEUE_OF_OPERATION[row.kind], row })));
    deps.logger.warn('operations woken by sweep', {
      count: taken,
      sent: sent.ok,
      operationIds: rows.slice(0, 20).map(({ id }) => id),
    });
  } while (taken === BATCH);
}

async function canSend(deps: Deps): Promise<boolean> {
  try {
    return (await deps.producer.waitingCount(Object.values(QUEUE_OF_OPERATION))) < BACKLOG_MAX;
  } catch (error) {
    deps.logger.warn('sweep waits for Redis', { error });
    return false;
  }
}

/** Deletes what is kept for a time only, in small batches. */
export async function sweepExpired(deps: Deps): Promise<void> {
  const now = deps.clock.now();
  let deleted: number;
  do deleted = await deleteExpiredIdempotencyRecords(deps.database.prisma, now, BATCH);
  while (deleted === BATCH);
  await deleteExpiredSigningKeys(deps.database.prisma, now);
}
