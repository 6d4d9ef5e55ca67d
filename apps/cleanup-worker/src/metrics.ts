import { OPERATION_KINDS, type OperationKind } from '@callplane/core';
import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

const OUTCOMES = ['completed', 'retry', 'failed', 'lease_lost'] as const;
export type AttemptOutcome = (typeof OUTCOMES)[number];

export interface OperationMetrics {
  attempt(kind: OperationKind, outcome: AttemptOutcome, lagMs: number, durationMs: number): void;
  /** By a sweep: waking what nothing woke, or ending what has used all of its attempts. */
  swept(kind: OperationKind, what: 'woken' | 'exhausted'): void;
}

/** What this worker counts; docs/operations.md says what to make of it. */
export function operationMetrics(metrics: Metrics): OperationMetrics {
  const kinds = OPERATION_KINDS.map((kind) => ({ kind }));
  const attempts = metrics.counter({
    name: 'callplane_operation_attempts_total',
    help: 'Attempts at durable operations.',
    labels: ['kind', 'outcome'],
    known: kinds.flatMap((kind) => OUTCOMES.map((outcome) => ({ ...kind, outcome }))),
  });
  const finished = metrics.counter({
    name: 'callplane_operations_finished_total',
    help: 'Runs of durable operations that this worker ended.',
    labels: ['kind', 'status'],
    known: kinds.flatMap((kind) => ['completed', 'failed'].map((status) => ({ ...kind, status }))),
  });
  const lag = metrics.histogram({
    name: 'callplane_operation_start_lag_seconds',
    help: 'From when an operation was due to its claim.',
    labels: ['kind'],
    known: kinds,
    buckets: [...SECONDS_BUCKETS, 30, 60, 300],
  });
  const duration = metrics.histogram({
    name: 'callplane_operation_attempt_duration_seconds',
    help: 'From the claim to the outcome.',
    labels: ['kind'],
    known: kinds,
    buckets: [...SECONDS_BUCKETS, 30, 120],
  });
  const leasesLost = metrics.counter({
    name: 'callplane_operation_leases_lost_total',
    help: 'Attempts that wrote nothing, because another worker had the row or PostgreSQL stayed away.',
    labels: ['kind'],
    known: kinds,
  });
  const swept = metrics.counter({
    name: 'callplane_operation_swept_total',
    help: 'Operations that a sweep of this worker took, and why.',
    labels: ['kind', 'what'],
    known: kinds.flatMap((kind) => ['woken', 'exhausted'].map((what) => ({ ...kind, what }))),
  });
  return {
    attempt: (kind, outcome, lagMs, durationMs) => {
      attempts.inc({ kind, outcome });
      lag.observe({ kind }, Math.max(0, lagMs) / 1000);
      duration.observe({ kind }, durationMs / 1000);
      if (outcome === 'lease_lost') leasesLost.inc({ kind });
      if (outcome === 'completed' || outcome === 'failed') finished.inc({ kind, status: outcome });
    },
    swept: (kind, what) => {
      swept.inc({ kind, what });
      if (what === 'exhausted') finished.inc({ kind, status: 'failed' });
    },
  };
}
