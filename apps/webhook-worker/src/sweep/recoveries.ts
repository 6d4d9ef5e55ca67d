import { stepRecovery } from '@callplane/db';
import type { Deps } from '../deps.js';
import { wake } from './sweep.js';

/** A recovery replays at most so many deliveries in this time, in milliseconds, however many workers there are. */
const BATCH = 100;
const PACE_MS = 1000;

/** One step of every recovery whose turn has come. */
export async function sweepRecoveries(deps: Deps, signal: AbortSignal, paceMs = PACE_MS): Promise<void> {
  while (!signal.aborted) {
    const step = await stepRecovery(deps.database, paceMs, BATCH);
    if (step === null) return;
    const { deliveries, ...fields } = step;
    await wake(deps, deliveries);
    deps.logger.info('recovery step', { ...fields, woken: deliveries.length });
  }
}
