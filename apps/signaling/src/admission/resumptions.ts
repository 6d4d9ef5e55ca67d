import { resumeSessions, type Database, type ResumeInput, type ResumeOutcome } from '@callplane/db';
import { Batches, ONE_QUEUE, type Turns } from '@callplane/runtime';
import type { BatchMetrics } from '../batching/batch-metrics.js';
import { runWanted, type Unwanted, type Waiting, type Wanted } from './wanted.js';

const RESUMPTIONS_PER_BATCH_MAX = 100;

/**
 * Writes resumptions. All of this instance run in batches, in the order of their arrival. Those whose session or room is
 * locked by another transaction wait in a batch of their room, so that a slow room delays no other one.
 */
export class Resumptions {
  readonly #batches: Batches<Waiting<ResumeInput>, ResumeOutcome | Unwanted>;

  /** @param turns limits the batches that use the database at once */
  constructor({ database, metrics }: { database: Database; metrics: BatchMetrics }, turns: Turns) {
    this.#batches = new Batches({
      run: (key, items) =>
        runWanted(items, (inputs) => resumeSessions(database, inputs, { skipLocked: key === ONE_QUEUE })),
      sizeMax: RESUMPTIONS_PER_BATCH_MAX,
      turns,
      onBatch: (size, durationMs) => metrics.batch('resumptions', size, durationMs),
    });
  }

  async resume(
    input: ResumeInput,
    wanted: () => Wanted,
  ): Promise<Exclude<ResumeOutcome, { outcome: 'busy' }> | Unwanted> {
    let outcome = await this.#batches.add(ONE_QUEUE, { input, wanted });
    if (outcome.outcome === 'busy') outcome = await this.#batches.add(outcome.roomId, { input, wanted });
    if (outcome.outcome === 'busy') throw new Error(`${input.sessionId} was not locked`);
    return outcome;
  }
}
