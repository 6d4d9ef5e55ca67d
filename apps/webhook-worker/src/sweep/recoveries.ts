import { stepRecovery } from '@callplane/db';
import type { Deps } from '../deps.js';

/** A recovery replays at most this many deliveries per `PACE_MS` milliseconds, regardless of the number of workers. */
const BATCH = 100;
const PACE_MS = 1000;

/** Runs one step of every recovery whose pause has passed. */
export async function sweepRecoveries(deps: Deps, signal: AbortSignal, paceMs = PACE_MS): Promise<void> {
  while (!signal.aborted) {
    const step = await stepRecovery(deps.database, paceMs, BATCH);
    if (step === null) return;
    const { deliveries, ...fields } = step;
    await deps.producer.wakeDeliveries(deliveries);
    deps.logger.info('recovery step', { ...fields, woken: deliveries.length });
  }
}
