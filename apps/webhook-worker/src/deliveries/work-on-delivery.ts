import { randomUUID } from 'node:crypto';
import { afterAttempt, isProof, traceIdOf, type AfterAttempt } from '@callplane/core';
import { releaseDelivery, type AttemptRecord, type ClaimedDelivery } from '@callplane/db';
import type { Deps } from '../deps.js';
import { send } from '../sending/send.js';
import type { Attempted } from './dispatcher.js';

/** When a delivery is tried again whose secret this worker cannot open, in milliseconds. */
const KEY_MISSING_DELAY_MS = 60_000;

/**
 * One attempt at one delivery: claim, send, settle, next wake-up. Resolves when the receiver has answered or the attempt
 * has failed: the slot is free then, and what it came to is written meanwhile (`settled`).
 */
export async function attemptDelivery(deps: Deps, deliveryId: string): Promise<Attempted> {
  const claim = await deps.claiming.claim({ deliveryId, leaseToken: randomUUID() });
  if (claim === null) return null;
  const secret = await openSecret(deps, claim);
  if (secret === null) return null;
  const attempt = await sendInTurn(deps, claim, secret);
  if (attempt === null) return null;
  const proves = isProof(attempt.outcome, attempt.statusCode, attempt.durationMs);
  return { proves, settled: settle(deps, claim, attempt, proves) };
}

/** As {@link attemptDelivery}, and waits until all of it is written. */
export async function workOnDelivery(deps: Deps, deliveryId: string): Promise<{ proves: boolean } | null> {
  const attempted = await attemptDelivery(deps, deliveryId);
  if (attempted === null) return null;
  await attempted.settled;
  return { proves: attempted.proves };
}

/**
 * Null when this worker drains before the turn comes, or has slept through the lease: then the row is free again, if it
 * is not another's by now, and the attempt does not count.
 */
async function sendInTurn(deps: Deps, claim: ClaimedDelivery, secret: string): Promise<AttemptRecord | null> {
  const claimedAt = performance.now();
  const hasTurn = await deps.senders.enter();
  const waitedMs = performance.now() - claimedAt;
  try {
    if (!hasTurn || waitedMs >= deps.leaseMs) {
      await releaseDelivery(deps.database.prisma, claim, 0);
      return null;
    }
    claim.lagMs += waitedMs;
    claim.claimedAt = new Date(claim.claimedAt.getTime() + waitedMs);
    return await send(deps, claim, secret);
  } finally {
    if (hasTurn) deps.senders.leave();
  }
}

async function settle(deps: Deps, claim: ClaimedDelivery, attempt: AttemptRecord, proves: boolean): Promise<void> {
  const after = afterAttempt({
    runAttempt: claim.runAttempt,
    outcome: attempt.outcome,
    statusCode: attempt.statusCode,
    runAgeMs: claim.runAgeMs + attempt.durationMs,
    random: deps.random,
  });
  const row = await deps.settling.settle({ claim, attempt, after, proves });
  count(deps, claim, attempt, after, row !== null);
  logAttempt(deps, claim, attempt, after, row !== null);
  if (row !== null && after.status === 'pending') {
    // The sweep finds what this does not wake.
    void deps.producer.wake({ queue: 'webhook-delivery', row, delayMs: after.delayMs });
  }
}

/** Our own failure, not the receiver's: it costs no attempt. */
async function openSecret(deps: Deps, claim: ClaimedDelivery): Promise<string | null> {
  try {
    return deps.secrets.open(claim.secretSealed, `webhook-secret:${claim.endpointId}:${claim.secretVersion}`);
  } catch (error) {
    deps.logger.error('signing secret not opened', { deliveryId: claim.id, endpointId: claim.endpointId, error });
    await releaseDelivery(deps.database.prisma, claim, KEY_MISSING_DELAY_MS);
    return null;
  }
}

function count(
  { metrics }: Deps,
  claim: ClaimedDelivery,
  attempt: AttemptRecord,
  after: AfterAttempt,
  settled: boolean,
): void {
  metrics.attempt(attempt.outcome, claim.lagMs, attempt.durationMs);
  if (!settled) metrics.leaseLost();
  else if (after.status === 'failed') metrics.finished('failed', after.reason);
  else if (after.status === 'succeeded') metrics.finished('succeeded');
}

function logAttempt(
  { logger }: Deps,
  claim: ClaimedDelivery,
  attempt: AttemptRecord,
  after: AfterAttempt,
  settled: boolean,
): void {
  const fields = {
    deliveryId: claim.id,
    endpointId: claim.endpointId,
    environmentId: claim.environmentId,
    eventId: claim.eventId,
    eventType: claim.eventType,
    replayCount: claim.replayCount,
    attempt: claim.runAttempt,
    ...(claim.traceparent === null ? {} : { traceId: traceIdOf(claim.traceparent) }),
    lagMs: claim.lagMs,
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    errorCode: attempt.errorCode,
    statusCode: attempt.statusCode,
    address: attempt.address,
    ...attempt.timings,
    ...(settled ? { status: after.status } : { status: 'lease_lost' }),
    ...(settled && after.status === 'pending' ? { retryInMs: after.delayMs } : {}),
    ...(settled && after.status === 'failed' ? { failureReason: after.reason } : {}),
  };
  if (!settled || after.status === 'failed') logger.warn('delivery attempt', fields);
  else logger.info('delivery attempt', fields);
}
