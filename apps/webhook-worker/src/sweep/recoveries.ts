import { RECOVERY_PACE } from '@callplane/core';
import { stepRecovery } from '@callplane/db';
import { logTransition } from '@callplane/runtime';
import type { Deps } from '../deps.js';

/** Runs one step of every recovery whose pause has passed. */
export async function sweepRecoveries(
  deps: Pick<Deps, 'database' | 'producer' | 'logger'>,
  signal: AbortSignal,
  paceMs = RECOVERY_PACE.paceMs,
): Promise<void> {
  while (!signal.aborted) {
    const startedAtMs = performance.now();
    const step = await stepRecovery(deps.database, { ...RECOVERY_PACE, paceMs });
    if (step === null) return;
    const { deliveries, ...fields } = step;
    const tookMs = performance.now() - startedAtMs;
    for (const { id, isReplayed } of deliveries) {
      const transition = isReplayed ? 'replay' : 'retryNow';
      logTransition(deps.logger, transition, () => ({ subject: 'delivery', row: id, tookMs }));
    }
    await deps.producer.wakeDeliveries(deliveries);
    deps.logger.info('recovery step', fields);
  }
}
