import type { OperationKind } from '@callplane/core';
import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

const OPERATION_OUTCOMES = ['completed', 'retry', 'failed', 'lease_lost'] as const;
type OperationOutcome = (typeof OPERATION_OUTCOMES)[number];

/** Metrics of operations of these kinds; docs/operations/monitoring.md explains them. */
export function operationMetrics(metrics: Metrics, names: readonly OperationKind[]) {
  const kinds = names.map((kind) => ({ kind }));
  const attempts = metrics.counter({
    name: 'callplane_operation_attempts_total',
    help: 'Attempts at operations, by kind and outcome.',
    labels: ['kind', 'outcome'],
    known: kinds.flatMap((kind) => OPERATION_OUTCOMES.map((outcome) => ({ ...kind, outcome }))),
  });
  const finished = metrics.counter({
    name: 'callplane_operations_finished_total',
    help: 'Finished operation runs, by kind and status.',
    labels: ['kind', 'status'],
    known: kinds.flatMap((kind) => ['completed', 'failed'].map((status) => ({ ...kind, status }))),
  });
  const lag = metrics.histogram({
    name: 'callplane_operation_start_lag_seconds',
    help: 'Time from the due time of an operation to its claim, in seconds.',
    labels: ['kind'],
    known: kinds,
    buckets: [...SECONDS_BUCKETS, 30, 60, 300],
  });
  const duration = metrics.histogram({
    name: 'callplane_operation_attempt_duration_seconds',
    help: 'Time from the claim of an operation to its outcome, in seconds.',
    labels: ['kind'],
    known: kinds,
    buckets: [...SECONDS_BUCKETS, 30, 120],
  });
  const leasesLost = metrics.counter({
    name: 'callplane_operation_leases_lost_total',
    help: 'Attempts without a written outcome, because the lease was lost or PostgreSQL was unavailable.',
    labels: ['kind'],
    known: kinds,
  });
  const swept = metrics.counter({
    name: 'callplane_operation_swept_total',
    help: 'Operations that a scan found more than 8 s late (woken) or that a sweep settled (exhausted).',
    labels: ['kind', 'what'],
    known: kinds.flatMap((kind) => ['woken', 'exhausted'].map((what) => ({ ...kind, what }))),
  });
  return {
    attempt(kind: OperationKind, outcome: OperationOutcome, lagMs: number, durationMs: number): void {
      attempts.inc({ kind, outcome });
      lag.observe({ kind }, Math.max(0, lagMs) / 1000);
      duration.observe({ kind }, durationMs / 1000);
      if (outcome === 'lease_lost') leasesLost.inc({ kind });
      if (outcome === 'completed' || outcome === 'failed') finished.inc({ kind, status: outcome });
    },
    /** Counts a due operation that a scan found, because no job announced it. */
    foundLate: (kind: OperationKind) => swept.inc({ kind, what: 'woken' }),
    sweptExhausted(kind: OperationKind): void {
      swept.inc({ kind, what: 'exhausted' });
      finished.inc({ kind, status: 'failed' });
    },
  };
}

export type OperationMetrics = ReturnType<typeof operationMetrics>;
