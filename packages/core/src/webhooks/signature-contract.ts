import {
  ATTEMPTS_PER_RUN,
  BACKOFF_JITTER_RATIO_MAX,
  BACKOFF_SECONDS,
  CONCURRENCY_PER_WORKER,
  LEASE_SECONDS,
} from '../operations/operation.js';
import {
  DELIVERY_DEADLINE_SECONDS,
  DNS_DEADLINE_SECONDS,
  REPLAYS_MAX,
  RUN_AGE_DAYS_MAX,
  TERMINAL_RETENTION_DAYS,
} from './vocabulary.js';

/** How webhook deliveries are signed and retried; `GET /v1/webhooks/signature-contract` returns it. */
export const SIGNATURE_CONTRACT = {
  version: 'v1',
  algorithm: 'HMAC-SHA256',
  signatureHeader: 'x-service-signature',
  deliveryIdHeader: 'x-service-delivery-id',
  replayCountHeader: 'x-service-replay-count',
  secretVersionHeader: 'x-service-signing-key-version',
  signedContent: 'The ASCII bytes of "timestamp.deliveryId.replayCount." followed by the exact raw request body bytes.',
  signatureFormat: 't=<Unix seconds>,v1=<lowercase hexadecimal HMAC>',
  secretEncoding: 'The complete signing secret, including its whsec_ prefix, is used as UTF-8 bytes for the HMAC key.',
  toleranceSeconds: 300,
  deduplication:
    'A valid signature does not prevent duplicate processing. Store the event id atomically with the result of the ' +
    'business processing; retries and replays keep the same event id and delivery id.',
  replay:
    'An explicit replay increments the signed replay count and resets the retry budget. It creates no new business event.',
  attemptsPerRun: ATTEMPTS_PER_RUN,
  maximumExplicitReplays: REPLAYS_MAX,
  concurrencyPerWorker: CONCURRENCY_PER_WORKER,
  leaseSeconds: LEASE_SECONDS,
  backoffSeconds: [...BACKOFF_SECONDS],
  backoffJitter: `Each retry delay gets up to ${BACKOFF_JITTER_RATIO_MAX * 100} percent additional random jitter.`,
  retryPolicy:
    'DNS and network failures, HTTP 408, 425, 429 and 5xx are retried. Other HTTP failures and unsafe destinations are ' +
    'terminal. Automatic retries use the original delivery URL.',
  deliveryDeadlineSeconds: DELIVERY_DEADLINE_SECONDS,
  dnsDeadlineSeconds: DNS_DEADLINE_SECONDS,
  maximumRunAgeDays: RUN_AGE_DAYS_MAX,
  terminalRetentionDays: TERMINAL_RETENTION_DAYS,
  retention:
    'Deliveries and attempt logs are kept for 30 days after the most recent terminal outcome. Events are kept while any ' +
    'delivery references them.',
  replayInput:
    'The caller supplies expectedReplayCount, taken from the current delivery record. Pending or delivering records cannot be replayed.',
  replayDestination: "A replay uses the endpoint's current URL and signing secret.",
  verification:
    'Reject malformed headers and timestamps, and a timestamp more than 300 seconds from your clock. Verify timestamp, ' +
    'delivery id, replay count and signature against the raw bytes before parsing JSON, and compare signatures in constant time.',
} as const;
