import {
  ATTEMPT_OUTCOMES,
  DELIVERY_FAILURE_REASONS,
  type AttemptOutcome,
  type DeliveryFailureReason,
} from '@callplane/core';
import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

const SWEPT = ['lease_expired', 'run_expired', 'endpoint_deleted'] as const;
type Swept = (typeof SWEPT)[number];
const PURGED = ['deliveries', 'recoveries', 'endpoints', 'secrets', 'events'] as const;
type Purged = (typeof PURGED)[number];

/** Metrics of deliveries, endpoints and retention; docs/operations/monitoring.md explains them. */
export function webhookMetrics(metrics: Metrics) {
  const attempts = metrics.counter({
    name: 'callplane_webhook_attempts_total',
    help: 'Delivery attempts, by the stage in which they ended.',
    labels: ['outcome'],
    known: ATTEMPT_OUTCOMES.map((outcome) => ({ outcome })),
  });
  const finished = metrics.counter({
    name: 'callplane_webhook_deliveries_finished_total',
    help: 'Finished delivery runs, by status and reason.',
    labels: ['status', 'reason'],
    known: [
      { status: 'succeeded', reason: 'none' },
      ...DELIVERY_FAILURE_REASONS.map((reason) => ({ status: 'failed', reason })),
    ],
  });
  const lag = metrics.histogram({
    name: 'callplane_webhook_delivery_start_lag_seconds',
    help: 'Time from the due time of a delivery to the start of its attempt, in seconds.',
    buckets: [...SECONDS_BUCKETS, 30, 60, 300],
  });
  const duration = metrics.histogram({
    name: 'callplane_webhook_attempt_duration_seconds',
    help: 'Time from the start of an attempt to the end of the response, in seconds.',
    buckets: SECONDS_BUCKETS,
  });
  const leasesLost = metrics.counter({
    name: 'callplane_webhook_leases_lost_total',
    help: 'Attempts whose outcome could not be written, because the lease was lost or PostgreSQL was unavailable.',
  });
  const swept = metrics.counter({
    name: 'callplane_webhook_swept_total',
    help: 'Endpoints found by a scan (woken), and deliveries handled by a sweep of this worker, by reason.',
    labels: ['what'],
    known: ['woken', ...SWEPT].map((what) => ({ what })),
  });
  const purged = metrics.counter({
    name: 'callplane_retention_rows_total',
    help: 'Rows deleted by retention.',
    labels: ['what'],
    known: PURGED.map((what) => ({ what })),
  });
  const warnings = metrics.counter({
    name: 'callplane_webhook_disable_warnings_total',
    help: 'Warnings about endpoints that keep failing and will be disabled (WEBHOOK_DISABLE_AFTER_DAYS).',
  });
  const disabled = metrics.counter({
    name: 'callplane_webhook_endpoints_disabled_total',
    help: 'Endpoints that this worker disabled because all their attempts failed (WEBHOOK_DISABLE_AFTER_DAYS).',
  });
  let failing = 0;
  metrics.gauge(
    {
      name: 'callplane_webhook_endpoints_failing',
      help: 'Enabled endpoints whose attempts have all failed for 15 minutes. Every worker reports the same value, so take the maximum.',
    },
    () => failing,
  );
  return {
    attempt(outcome: AttemptOutcome, lagMs: number, durationMs: number): void {
      attempts.inc({ outcome });
      lag.observe(Math.max(0, lagMs) / 1000);
      duration.observe(durationMs / 1000);
    },
    finished: (status: 'succeeded' | 'failed', reason?: DeliveryFailureReason, count = 1) =>
      finished.inc({ status, reason: reason ?? 'none' }, count),
    leaseLost: () => leasesLost.inc(),
    /** Counts endpoints whose deliveries had been due for a while when a scan found them. */
    foundByScan: (count: number) => swept.inc({ what: 'woken' }, count),
    swept: (what: Swept, count: number) => swept.inc({ what }, count),
    purged: (what: Purged, count: number) => purged.inc({ what }, count),
    disableWarning: () => warnings.inc(),
    endpointDisabled: () => disabled.inc(),
    setEndpointsFailing(count: number): void {
      failing = count;
    },
  };
}

export type WebhookMetrics = ReturnType<typeof webhookMetrics>;
