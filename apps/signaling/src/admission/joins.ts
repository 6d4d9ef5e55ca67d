import type { Clock } from '@callplane/core';
import { joinSessions, type JoinOutcome, type Database, type JoinInput } from '@callplane/db';
import { Batches, type Turns } from '@callplane/runtime';
import type { BatchMetrics } from '../batching/batch-metrics.js';
import { runWanted, type Unwanted, type Waiting, type Wanted } from './wanted.js';

export interface JoinsDeps {
  clock: Clock;
  database: Database;
  /** A room with more live sessions is paged. */
  rosterFullMax: number;
  metrics: BatchMetrics;
}

const JOINS_PER_BATCH_MAX = 50;

/** Writes joins. The joins of a room run in batches, one after the other. */
export class Joins {
  readonly #batches: Batches<Waiting<JoinInput>, JoinOutcome | Unwanted>;

  /** @param turns leaves a part of the database pool to the sessions that are in a room already */
  constructor({ clock, database, metrics, rosterFullMax }: JoinsDeps, turns: Turns) {
    this.#batches = new Batches({
      run: (roomId, items) =>
        runWanted(items, (inputs) => joinSessions(database, roomId, inputs, clock.now(), { rosterFullMax })),
      sizeMax: JOINS_PER_BATCH_MAX,
      turns,
      onBatch: (size, durationMs) => metrics.batch('joins', size, durationMs),
    });
  }

  /**
   * @param wanted is called when the join has its turn, and before it is written or its transaction commits
   * @throws if PostgreSQL is unavailable, or this join failed
   */
  async join(input: JoinInput, wanted: () => Wanted): Promise<Exclude<JoinOutcome, { outcome: 'failed' }> | Unwanted> {
    const watched = { ...input, isWanted: () => wanted() !== 'disconnected' };
    const outcome = await this.#batches.add(input.roomId, { input: watched, wanted });
    if (outcome.outcome === 'failed') throw outcome.error;
    return outcome;
  }
}
