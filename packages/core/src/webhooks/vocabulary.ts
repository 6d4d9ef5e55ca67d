/** Subscribes an endpoint to all event types. */
export const ALL_EVENTS = '*';

export const DELIVERY_STATUSES = ['pending', 'delivering', 'succeeded', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const DELIVERY_FAILURE_REASONS = [
  'attempts_exhausted',
  'rejected',
  'unsafe_destination',
  'run_expired',
  'endpoint_deleted',
] as const;
export type DeliveryFailureReason = (typeof DELIVERY_FAILURE_REASONS)[number];

/** The stage that an attempt ended in. */
export const ATTEMPT_OUTCOMES = ['success', 'dns', 'connect', 'tls', 'timeout', 'response', 'blocked'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export const RECOVERY_STATUSES = ['pending', 'completed', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

export const ENDPOINTS_PER_ENVIRONMENT_MAX = 50;
/** Longest time until a new signing secret is activated, in seconds. */
export const ACTIVATE_IN_SECONDS_MAX = 7 * 86_400;
/** Constants of the webhook contract; the signature contract serves them too. */
export const REPLAYS_MAX = 100;
export const DELIVERY_DEADLINE_SECONDS = 10;
export const DNS_DEADLINE_SECONDS = 5;
export const RUN_AGE_DAYS_MAX = 7;
export const TERMINAL_RETENTION_DAYS = 30;
/** Number of bytes of a response body that the attempt log keeps. */
export const RESPONSE_BODY_KEPT_BYTES = 1024;
/** An endpoint is failing when more than one attempt, and all of them, have failed for this long. */
export const ENDPOINT_FAILS_AFTER_MS = 15 * 60_000;
/** The longest delay between two attempts is 7.2 hours. An endpoint without a failure for longer may work again. */
export const ENDPOINT_FAILURE_RECENT_MS = 8 * 3_600_000;
