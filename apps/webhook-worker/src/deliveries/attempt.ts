import {
  afterAttempt,
  headerContext,
  mapHeaders,
  open,
  traceIdOf,
  type AfterAttempt,
  type MasterKeys,
} from '@callplane/core';
import type { AttemptRecord, ClaimedDelivery } from '@callplane/db';
import { startSpan, type Span } from '@callplane/runtime';
import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.js';
import { send } from '../sending/send.js';

/** Delay until a delivery is due again if this worker cannot open its secret, in milliseconds. */
const KEY_MISSING_DELAY_MS = 60_000;

/** The result of an attempt, available once the receiver has answered or the attempt has failed. */
export interface Attempted {
  attempt: AttemptRecord;
  hung: boolean;
  /**
   * Writes the outcome of the attempt.
   * @param slotMs expected duration of the endpoint's next attempt, in milliseconds.
   * @returns null if the outcome could not be written.
   */
  settle(slotMs: number): Promise<Settled | null>;
}

export interface Settled {
  /** Milliseconds until the next attempt is due; null if there is none. */
  retryInMs: number | null;
}

/**
 * Makes one attempt at a claimed delivery.
 * @returns null if this worker cannot open the signing secret. The row is then released, and the attempt does not
 * count.
 */
export async function attemptDelivery(deps: Deps, claim: ClaimedDelivery): Promise<Attempted | null> {
  const opened = await openSecrets(deps, claim);
  if (opened === null) return null;
  const span = spanOf(claim);
  // The request belongs to the attempt.
  const traced: TracedClaim = span === null ? claim : { ...claim, traceparent: span.traceparent, spanId: span.spanId };
  const attempt = await send(deps, { ...traced, headers: opened.headers }, opened.secret);
  span?.end({
    attributes: { 'callplane.outcome': attempt.outcome, 'http.response.status_code': attempt.statusCode ?? undefined },
    error: attempt.outcome === 'success' ? null : (attempt.errorCode ?? attempt.outcome),
  });
  return { attempt, hung: attempt.outcome === 'timeout', settle: (slotMs) => settle(deps, traced, attempt, slotMs) };
}

/** A claim with the trace of its attempt. */
type TracedClaim = ClaimedDelivery & { spanId?: string };

function spanOf(claim: ClaimedDelivery): Span | null {
  return startSpan('process webhook-delivery', {
    kind: 'consumer',
    parent: claim.traceparent,
    attributes: {
      'messaging.system': 'callplane',
      'messaging.operation.type': 'process',
      'messaging.operation.name': 'process',
      'messaging.destination.name': 'webhook-delivery',
      'messaging.message.id': claim.id,
      'callplane.environment.id': claim.environmentId,
      'callplane.endpoint.id': claim.endpointId,
      'callplane.event.id': claim.eventId,
      'callplane.event.type': claim.eventType,
      'callplane.attempt': claim.runAttempt,
      'callplane.lag_ms': claim.lagMs,
    },
  });
}

async function settle(deps: Deps, claim: TracedClaim, attempt: AttemptRecord, slotMs: number): Promise<Settled | null> {
  const after = afterAttempt({
    runAttempt: claim.runAttempt,
    outcome: attempt.outcome,
    statusCode: attempt.statusCode,
    runAgeMs: claim.runAgeMs + attempt.durationMs,
    retryRejected: claim.retryRejected,
    random: deps.random,
  });
  const row = await deps.settling.settle({ claim, attempt, after, slotMs });
  report(deps, claim, attempt, after, row !== null);
  if (row === null) return null;
  return { retryInMs: after.status === 'pending' ? after.delayMs : null };
}

interface Opened {
  secret: string;
  headers: Record<string, string>;
}

/** A secret that cannot be opened is not the receiver's failure. It costs the delivery no attempt. */
async function openSecrets(deps: Deps, claim: ClaimedDelivery): Promise<Opened | null> {
  const { endpointId } = claim;
  try {
    const secret = deps.secrets.open(claim.secretSealed, `webhook-secret:${endpointId}:${claim.secretVersion}`);
    const openValue = (sealed: string, name: string) => deps.secrets.open(sealed, headerContext(endpointId, name));
    return { secret, headers: mapHeaders(claim.headers, openValue) };
  } catch (error) {
    deps.logger.error('signing secret not decrypted', { deliveryId: claim.id, endpointId: claim.endpointId, error });
    await deps.settling.release([claim], KEY_MISSING_DELAY_MS);
    return null;
  }
}

function report(
  { metrics, logger, networkOf }: Deps,
  claim: TracedClaim,
  attempt: AttemptRecord,
  after: AfterAttempt,
  settled: boolean,
): void {
  metrics.attempt(attempt.outcome, claim.lagMs, attempt.durationMs);
  if (!settled) metrics.leaseLost();
  else if (after.status === 'failed') metrics.finished('failed', after.reason);
  else if (after.status === 'succeeded') metrics.finished('succeeded');
  const network = attempt.address === null ? null : networkOf(attempt.address);
  const fields = {
    deliveryId: claim.id,
    endpointId: claim.endpointId,
    environmentId: claim.environmentId,
    eventId: claim.eventId,
    eventType: claim.eventType,
    replayCount: claim.replayCount,
    attempt: claim.runAttempt,
    ...(claim.traceparent === null ? {} : { traceId: traceIdOf(claim.traceparent) }),
    ...(claim.spanId === undefined ? {} : { spanId: claim.spanId }),
    lagMs: claim.lagMs,
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    errorCode: attempt.errorCode,
    statusCode: attempt.statusCode,
    address: attempt.address,
    ...(network === null ? {} : { network }),
    ...attempt.timings,
    // The outcome was not written: the lease was lost, or PostgreSQL stayed unavailable (`delivery not settled`).
    ...(settled ? { status: after.status } : { status: 'lease_lost' }),
    ...(settled && after.status === 'pending' ? { retryInMs: after.delayMs } : {}),
    ...(settled && after.status === 'failed' ? { failureReason: after.reason } : {}),
  };
  if (!settled || after.status === 'failed') logger.warn('delivery attempt', fields);
  else logger.info('delivery attempt', fields);
}

const SECRETS_MAX = 10_000;

/** Caches the secrets and header values that were opened, because opening one costs as much as signing with it. */
export class OpenedSecrets {
  readonly #opened = new LRUCache<string, string>({ max: SECRETS_MAX });

  constructor(private readonly masterKeys: MasterKeys) {}

  /**
   * @throws Error if the sealed secret was altered, belongs to another context, or its master key is not configured.
   */
  open(sealed: string, context: string): string {
    const key = `${context} ${sealed}`;
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    const secret = open(this.masterKeys, sealed, context);
    this.#opened.set(key, secret);
    return secret;
  }
}
