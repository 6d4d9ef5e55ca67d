import {
  deleteExpiredConsoleSessions,
  deleteExpiredIdempotencyRecords,
  deleteExpiredSigningKeys,
  settleExhaustedOperation,
} from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { writeOperationFailed } from '../operations/events.js';

/** Rows per batch. A full batch is followed by the next one at once. */
const BATCH = 500;

/** Settles operations whose worker died in the last attempt of the run. */
export async function settleExhausted(deps: Deps): Promise<void> {
  for (;;) {
    // One operation per transaction, because each writes an event, which locks its room.
    const settled = await deps.database.transaction(async (tx) => {
      const operation = await settleExhaustedOperation(tx);
      if (operation === null) return null;
      return { operation, deliveries: await writeOperationFailed(tx, operation, operation, deps.clock.now()) };
    });
    if (settled === null) return;
    deps.logger.error('operation settled by sweep', { operationId: settled.operation.id, outcome: 'failed' });
    deps.metrics.sweptExhausted(settled.operation.kind);
    await deps.producer.wakeDeliveries(settled.deliveries);
    await publishNotice(deps.producer.redis, 'operationSettled', settled.operation.id);
  }
}

/** Deletes expired idempotency records in batches, and expired console sessions and signing keys. */
export async function sweepExpired({ database, clock, metrics }: Deps): Promise<void> {
  const now = clock.now();
  let deleted: number;
  do {
    deleted = await deleteExpiredIdempotencyRecords(database.sql, now, BATCH);
    metrics.purged('idempotency_records', deleted);
  } while (deleted === BATCH);
  metrics.purged('console_sessions', await deleteExpiredConsoleSessions(database.prisma, now));
  await deleteExpiredSigningKeys(database.prisma, now);
}
