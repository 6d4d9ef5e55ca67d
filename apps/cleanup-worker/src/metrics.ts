import type { OperationKind } from '@callplane/core';
import { operationMetrics } from '@callplane/operations';
import type { Metrics } from '@callplane/runtime';

/** Kinds of rows that retention deletes or erasure rewrites. */
const PURGED = [
  'rooms',
  'participants',
  'sessions',
  'tokens',
  'operations',
  'idempotency_records',
  'console_sessions',
  'erased_events',
] as const;
export type Purged = (typeof PURGED)[number];

const CLEAN_UPS: readonly OperationKind[] = ['room.end', 'participant.remove', 'participant.move'];

/** Metrics of operations and retention; docs/operations/monitoring.md explains them. */
export function cleanupMetrics(metrics: Metrics) {
  const purged = metrics.counter({
    name: 'callplane_retention_rows_total',
    help: 'Rows deleted by retention, and events whose personal data was erased.',
    labels: ['what'],
    known: PURGED.map((what) => ({ what })),
  });
  return {
    ...operationMetrics(metrics, CLEAN_UPS),
    purged: (what: Purged, count: number) => purged.inc({ what }, count),
  };
}

export type CleanupMetrics = ReturnType<typeof cleanupMetrics>;

const CLOSERS = ['operation', 'sweep'] as const;
export type RelayCloser = (typeof CLOSERS)[number];

export function relayMetrics(metrics: Metrics) {
  const known = CLOSERS.map((by) => ({ by }));
  const closed = metrics.counter({
    name: 'callplane_relays_closed_total',
    help: 'Relays of ended sessions, and relays that live sessions have replaced, that this worker closed.',
    labels: ['by'],
    known,
  });
  const failures = metrics.counter({
    name: 'callplane_relay_failures_total',
    help: 'Failed attempts to close relays on a TURN server.',
    labels: ['by'],
    known,
  });
  return {
    closed: (by: RelayCloser, count: number) => closed.inc({ by }, count),
    failed: (by: RelayCloser) => failures.inc({ by }),
  };
}

export type RelayMetrics = ReturnType<typeof relayMetrics>;
