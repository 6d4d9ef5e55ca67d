import { settleExhaustedOperation } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { namesOf, type Kinds, type OperationDeps } from './kind.js';
import { writeOperationFailed } from './operation-failed.js';

/** Settles operations whose worker died in the last attempt of the run. */
export async function settleExhausted<Deps extends OperationDeps>(
  deps: Pick<OperationDeps, 'database' | 'producer' | 'logger' | 'metrics' | 'clock'>,
  kinds: Kinds<Deps>,
): Promise<void> {
  for (;;) {
    // One operation per transaction, because each writes an event, which locks its room.
    const settled = await deps.database.transaction(async (tx) => {
      const operation = await settleExhaustedOperation(tx, namesOf(kinds));
      if (operation === null) return null;
      const now = deps.clock.now();
      const deliveries = await writeOperationFailed(tx, kinds[operation.kind], operation, operation, now);
      return { operation, deliveries };
    });
    if (settled === null) return;
    deps.logger.error('operation settled by sweep', { operationId: settled.operation.id, outcome: 'failed' });
    deps.metrics.sweptExhausted(settled.operation.kind);
    await deps.producer.wakeDeliveries(settled.deliveries);
    await publishNotice(deps.producer.redis, 'operationSettled', settled.operation.id);
  }
}
