import { admitJoins, type Admission, type Database, type JoinRequest } from '@callplane/db';
import { Batches, type Turns } from '@callplane/runtime';
import type { BatchMetrics } from '../batching/batch-metrics.js';
import type { ArrivalLimits } from './arrival-limits.js';
import { runWanted, type Unwanted, type Waiting, type Wanted } from './wanted.js';

export interface AdmissionsDeps {
  database: Database;
  arrivalLimits: ArrivalLimits;
  metrics: BatchMetrics;
}

const ADMISSIONS_PER_BATCH_MAX = 100;

/**
 * Numbers the joins of each participant in the order in which they arrive. An admission does not wait for the turn of
 * the join itself, because the number must reflect when the join arrived.
 */
export class Admissions {
  readonly #batches: Batches<Waiting<JoinRequest>, Admission | Unwanted>;

  /** @param turns limits the batches that use the database at once */
  constructor({ arrivalLimits, database, metrics }: AdmissionsDeps, turns: Turns) {
    this.#batches = new Batches({
      run: (_key, items) => runWanted(items, (requests) => admitJoins(database.sql, requests, arrivalLimits.joins)),
      sizeMax: ADMISSIONS_PER_BATCH_MAX,
      turns,
      onBatch: (size, durationMs) => metrics.batch('admissions', size, durationMs),
    });
  }

  /**
   * @param wanted A disconnected client gets no number. The number would make its newer join at another instance look
   *   older.
   */
  admit(input: JoinRequest, wanted: () => Wanted): Promise<Admission | Unwanted> {
    // Each batch is for one room. It can block on a participant row that a slow join has locked, and must not delay the
    // joins of other rooms.
    return this.#batches.add(input.roomId, { input, wanted });
  }
}
