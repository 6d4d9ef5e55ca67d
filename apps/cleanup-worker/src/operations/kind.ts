import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import type { ClaimedOperation, DueEndpoint, TypedSql } from '@callplane/db';
import type { Deps } from '../deps.js';

type StepDeps = Pick<Deps, 'database' | 'clock' | 'producer' | 'logger' | 'media' | 'relays' | 'graceMs'>;

export interface Attempt {
  /** Adds fields to the log line of the attempt. */
  note(fields: Record<string, unknown>): void;
  /** Aborts when the lease is lost: the step stops, and writes nothing more. */
  signal: AbortSignal;
}

/** One step of an operation. Every step is idempotent, and each of its transactions writes only under the lease. */
export interface Step {
  /** Callers of the API see it in `lastError`. */
  name: string;
  run(deps: StepDeps, claim: ClaimedOperation, attempt: Attempt): Promise<void>;
}

/** Concurrent attempts of one worker process. Kinds with the same object share its slots. */
export interface Slots {
  concurrency: number;
}

/** The contract defines the concurrency of clean-ups per worker process, so all of them share these slots. */
export const CLEAN_UP_SLOTS: Slots = { concurrency: CONCURRENCY_PER_WORKER };

/** How a worker works on one kind of operation. */
export interface Kind {
  /** In order. Accepting the operation already prevents new tokens and joins, so no step has to. */
  steps: readonly Step[];
  /**
   * Writes the effect of completion, in the transaction that settles the operation. Without it, completion has no other
   * effect.
   * @returns the deliveries to wake after the commit
   */
  complete?: (tx: TypedSql, claim: ClaimedOperation, now: Date) => Promise<DueEndpoint[]>;
  slots: Slots;
  /** Whether an attempt may take longer than a lease, and renews it. */
  isLong: boolean;
}
