import {
  ATTEMPT_OUTCOMES,
  DELIVERY_FAILURE_REASONS,
  type AttemptOutcome,
  type DeliveryFailureReason,
} from '@callplane/core';
import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

/** Why a sweep took rows. */
const SWEPT = ['woken', 'lease_expired', 'run_expired', 'endpoint_deleted'] as const;
type Swept = (typeof SWEPT)[number];

export interface WebhookMetrics {
  attempt(outcome: AttemptOutcome, lagMs: number, durationMs: number): void;
  finished(status: 'succeeded' | 'failed', reason?: DeliveryFailureReason, count?: number): void;
  leaseLost(): void;
  swept(what: Swept, count: number): void;
  disableWarning(): void;
  endpointDisabled(): void;
  /** How many endpoints fail for so long that they are warned of. */
  setEndpointsFailing(count: number): void;
}

/** What this worker counts; docs/operations.md says what to make of it. */
export function webhookMetrics(metrics: Metrics): WebhookMetrics {
  const attempts = metrics.counter({
    name: 'callplane_webhook_attempts_total',
    help: 'Attempts at deliveries, by the stage that they ended in.',
    labels: ['outcome'],
    known: ATTEMPT_OUTCOMES.map((outcome) => ({ outcome })),
  });
  const finished = metrics.counter({
    name: 'callplane_webhook_deliveries_finished_total',
    help: 'Runs of deliveries that this worker ended.',
    labels: ['status', 'reason'],
    known: [
      { status: 'succeeded', reason: 'none' },
      ...DELIVERY_FAILURE_REASONS.map((reason) => ({ status: 'failed', reason })),
    ],
  });
  const lag = metrics.histogram({
    name: 'callplane_webhook_delivery_start_lag_seconds',
    help: 'From when a delivery was due to the start of its attempt.',
    buckets: [...SECONDS_BUCKETS, 30, 60, 300],
  });
  const duration = metrics.histogram({
    name: 'callplane_webhook_attempt_duration_seconds',
    help: 'From the start of an attempt to the end of the answer.',
    buckets: SECONDS_BUCKETS,
  });
  const leasesLost = metrics.counter({
    name: 'callplane_webhook_leases_lost_total',
    help: 'Attempts whose outcome could not be written, because the lease was lost or PostgreSQL stayed away.',
  });
  const swept = metrics.counter({
    name: 'callplane_webhook_swept_total',
    help: 'Deliveries that a sweep of this worker took, and why.',
    labels: ['what'],
    known: SWEPT.map((what) => ({ what })),
  });
  const warnings = metrics.counter({
    name: 'callplane_webhook_disable_warnings_total',
    help: 'Warnings that an endpoint has only failed and will be disabled (WEBHOOK_DISABLE_AFTER_DAYS).',
  });
  const disabled = metrics.counter({
    name: 'callplane_webhook_endpoints_disabled_total',
    help: 'Endpoints that this worker disabled because they had only failed (WEBHOOK_DISABLE_AFTER_DAYS).',
  });
  let failing = 0;
  metrics.gauge(
    {
      name: 'callplane_webhook_endpoints_failing',
      help: 'Endpoints that are warned of at present; every worker reports the same, so take the maximum.',
    },
    () => failing,
  );
  return {
    attempt: (outcome, lagMs, durationMs) => {
      attempts.inc({ outcome });
      lag.observe(Math.max(0, lagMs) / 1000);
      duration.observe(durationMs / 1000);
    },
    finished: (status, reason, count = 1) => finished.inc({ status, reason: reason ?? 'none' }, count),
    leaseLost: () => leasesLost.inc(),
    swept: (what, count) => swept.inc({ what }, count),
    disableWarning: () => warnings.inc(),
    endpointDisabled: () => disabled.inc(),
    setEndpointsFailing: (count) => {
      failing = count;
    },
  };
}
