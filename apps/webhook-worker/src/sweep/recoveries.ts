import { RECOVERY_PACE } from '@callplane/core';
import { stepRecovery } from '@callplane/db';
import type { Deps } from '../deps.js';

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
