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

/** The sweep begins anew at the oldest records after this time, in milliseconds: it may have skipped locked ones. */
const FROM_START_EVERY_MS = 3_600_000;

/** Where the next sweep continues. */
export interface ExpiredPosition {
  from: Date | null;
  /** When it last began at the oldest records, in milliseconds of `performance.now()`. */
  beganAtMs: number;
}

export const newExpiredPosition = (): ExpiredPosition => ({ from: null, beganAtMs: -Infinity });

/** Deletes expired idempotency records and console sessions, in batches, and expired signing keys. */
export async function sweepExpired(deps: Deps, position = newExpiredPosition()): Promise<void> {
  const now = deps.clock.now();
  const nowMs = performance.now();
  if (nowMs - position.beganAtMs >= FROM_START_EVERY_MS) Object.assign(position, { from: null, beganAtMs: nowMs });
  let deleted: number;
  do {
    const batch = await deleteExpiredIdempotencyRecords(deps.database.sql, now, BATCH, position.from);
    ({ deleted } = batch);
    position.from = batch.next ?? position.from;
    deps.metrics.purged('idempotency_records', deleted);
  } while (deleted === BATCH);
  do {
    deleted = await deleteExpiredConsoleSessions(deps.database.sql, BATCH);
    deps.metrics.purged('console_sessions', deleted);
  } while (deleted === BATCH);
  await deleteExpiredSigningKeys(deps.database.prisma, now);
}
