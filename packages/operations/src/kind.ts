import type { Clock, OperationError, OperationKind, Random } from '@callplane/core';
import type { ClaimedOperation, Database, DueEndpoint, TypedSql } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { OperationMetrics } from './metrics.js';

/** The dependencies of every worker that works on operations. Its steps may need more. */
export interface OperationDeps {
  database: Database;
  producer: JobProducer;
  logger: Logger;
  metrics: OperationMetrics;
  clock: Clock;
  random: Random;
  leaseMs: number;
}

export interface Attempt {
  /** Adds fields to the log line of the attempt. */
  note(fields: Record<string, unknown>): void;
  /** Aborts when the lease is lost: the step stops, and writes nothing more. */
  signal: AbortSignal;
}

/** One step of an operation. Every step is idempotent, and each of its transactions writes only under the lease. */
export interface Step<Deps> {
  /** Callers of the API see it in `lastError`. */
  name: string;
  run(deps: Deps, claim: ClaimedOperation, attempt: Attempt): Promise<void>;
}

/** Concurrent attempts of one worker process. Kinds with the same object share its slots. */
export interface Slots {
  concurrency: number;
}

/** The operation of an effect: a claim, or the row that a sweep settles. */
export type Subject = Pick<ClaimedOperation, 'id' | 'kind' | 'roomId' | 'participantId' | 'subjectId'> &
  Pick<ClaimedOperation, 'environmentId' | 'projectId'>;

/** How a worker works on one kind of operation. */
export interface Kind<Deps> {
  /** In order. Accepting the operation already prevents new tokens and joins, so no step has to. */
  steps: readonly Step<Deps>[];
  /**
   * Writes the effect of completion, in the transaction that settles the operation. Without it, completion has no other
   * effect.
   * @returns the deliveries to wake after the commit
   */
  complete?: (tx: TypedSql, claim: ClaimedOperation, now: Date) => Promise<DueEndpoint[]>;
  /** The same for a run that has failed, before the event `operation.failed`. */
  fail?: (tx: TypedSql, operation: Subject, error: OperationError, now: Date) => Promise<DueEndpoint[]>;
  slots: Slots;
  /** Whether an attempt may take longer than a lease: it renews the lease, and environments take turns. */
  isLong: boolean;
}

/** The kinds that an app works on. */
export type Kinds<Deps> = Readonly<Partial<Record<OperationKind, Kind<Deps>>>>;

export const namesOf = <Deps>(kinds: Kinds<Deps>): OperationKind[] => Object.keys(kinds) as OperationKind[];
