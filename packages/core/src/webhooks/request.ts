import { createHmac } from 'node:crypto';
import type { EarlierAddress } from './attempt-phases.js';
import { maskedHeaders } from './endpoint-headers.js';
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

/**
 * Computes the value of the signature header, `t=<Unix seconds>,v1=<lowercase hexadecimal HMAC-SHA256>` (specification,
 * section 6). The key is the whole secret, including its `whsec_`, as UTF-8.
 */
export function signDelivery(input: {
  secret: string;
  timestampUnixSeconds: number;
  deliveryId: string;
  replayCount: number;
  body: Buffer | string;
}): string {
  const { secret, timestampUnixSeconds, deliveryId, replayCount, body } = input;
  const hmac = createHmac('sha256', secret)
    .update(`${timestampUnixSeconds}.${deliveryId}.${replayCount}.`)
    .update(body)
    .digest('hex');
  return `t=${timestampUnixSeconds},v1=${hmac}`;
}

/**
 * Computes the headers of the Standard Webhooks specification. Unlike the contract's own signature, the key is the
 * decoded secret without `whsec_`, and the signed content begins with the id of the event.
 */
export function standardWebhooksHeaders(input: {
  secret: string;
  timestampUnixSeconds: number;
  eventId: string;
  body: Buffer | string;
}): Record<string, string> {
  const { secret, timestampUnixSeconds, eventId, body } = input;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const hmac = createHmac('sha256', key).update(`${eventId}.${timestampUnixSeconds}.`).update(body).digest('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampUnixSeconds),
    'webhook-signature': `v1,${hmac}`,
  };
}

/** Generates a secret in the form that customers get. @param randomBytes 32 bytes from a cryptographic source. */
export function generateSigningSecret(randomBytes: Uint8Array): string {
  if (randomBytes.length !== 32) throw new RangeError('A signing secret is made of 32 random bytes.');
  return `whsec_${Buffer.from(randomBytes).toString('base64')}`;
}

interface RequestHeaderFacts {
  deliveryId: string;
  replayCount: number;
  secretVersion: number;
  signature: string;
  /** Headers of the Standard Webhooks specification; empty without them. */
  standardWebhooks: Record<string, string>;
  traceparent: string | null;
  /** Headers of the endpoint. */
  own?: Record<string, string>;
}

/** The headers of a delivery request, except for host, content length and connection, which HTTP itself adds. */
export function requestHeaders(facts: RequestHeaderFacts): Record<string, string> {
  return {
    ...facts.own,
    'content-type': 'application/json',
    'user-agent': 'Callplane-Webhooks/1',
    [SIGNATURE_CONTRACT.signatureHeader]: facts.signature,
    [SIGNATURE_CONTRACT.deliveryIdHeader]: facts.deliveryId,
    [SIGNATURE_CONTRACT.replayCountHeader]: String(facts.replayCount),
    [SIGNATURE_CONTRACT.secretVersionHeader]: String(facts.secretVersion),
    ...facts.standardWebhooks,
    ...(facts.traceparent === null ? {} : { traceparent: facts.traceparent }),
  };
}

/**
 * The part of a request's headers that cannot be derived from its delivery. Signatures are cut to their first
 * {@link SIGNATURE_SHOWN_CHARACTERS} characters: enough to compare with a receiver's signature, and too little to send
 * a genuine request again within the tolerance.
 */
export interface StoredRequest {
  signedAt: number;
  signature: string;
  /** Beginning of the signature of the Standard Webhooks specification; absent without its headers. */
  standardSignature?: string;
  traceparent?: string;
  /** Names of the headers of the endpoint. */
  own?: string[];
}

const SIGNATURE_SHOWN_CHARACTERS = 8;

export function toStoredRequest(
  headers: Record<string, string>,
  signedAt: number,
  own: readonly string[],
): StoredRequest {
  const standard = headers['webhook-signature'];
  const { traceparent } = headers;
  return {
    signedAt,
    signature: beginningOf(headers[SIGNATURE_CONTRACT.signatureHeader] ?? '', 'v1='),
    ...(standard === undefined ? {} : { standardSignature: beginningOf(standard, 'v1,') }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(own.length === 0 ? {} : { own: [...own] }),
  };
}

/** The headers of a request as they were sent, with cut signatures and masked headers of the endpoint. */
export function shownRequestHeaders(
  stored: StoredRequest,
  attempt: { deliveryId: string; eventId: string; replayCount: number; signingKeyVersion: number },
): Record<string, string> {
  return requestHeaders({
    deliveryId: attempt.deliveryId,
    replayCount: attempt.replayCount,
    secretVersion: attempt.signingKeyVersion,
    signature: `t=${stored.signedAt},v1=${stored.signature}…`,
    standardWebhooks:
      stored.standardSignature === undefined
        ? {}
        : {
            'webhook-id': attempt.eventId,
            'webhook-timestamp': String(stored.signedAt),
            'webhook-signature': `v1,${stored.standardSignature}…`,
          },
    traceparent: stored.traceparent ?? null,
    own: maskedHeaders(stored.own ?? []),
  });
}

function beginningOf(value: string, prefix: string): string {
  const begins = value.indexOf(prefix) + prefix.length;
  return value.slice(begins, begins + SIGNATURE_SHOWN_CHARACTERS);
}

/** Fields of an attempt's log beside its outcome and times. */
export interface AttemptExchange {
  request: StoredRequest | null;
  /** Addresses that were tried before the attempt's address, at most three. */
  earlierAddresses?: EarlierAddress[];
  /** Selected headers of an answer that is not 2xx. */
  responseHeaders?: Record<string, string>;
}

/** They help to find out who refused a request, and where to look. Others, such as cookies, are not stored. */
const RESPONSE_HEADERS_KEPT = [
  'allow',
  'content-type',
  'location',
  'retry-after',
  'server',
  'via',
  'www-authenticate',
] as const;
const RESPONSE_HEADER_CHARACTERS_MAX = 200;

/** Selects the headers of an answer for the log; undefined without any. PostgreSQL cannot store U+0000. */
export function keptResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> | undefined {
  const kept: Record<string, string> = {};
  for (const name of RESPONSE_HEADERS_KEPT) {
    const value = headers[name];
    if (value === undefined) continue;
    kept[name] = String(value).replaceAll('\u0000', '').slice(0, RESPONSE_HEADER_CHARACTERS_MAX);
  }
  return Object.keys(kept).length === 0 ? undefined : kept;
}

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
