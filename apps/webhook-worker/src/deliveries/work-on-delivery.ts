import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAttempt, isProof, open, type AfterAttempt } from '@callplane/core';
import {
  claimDelivery,
  isDatabaseUnavailable,
  releaseDelivery,
  settleDelivery,
  type AttemptRecord,
  type ClaimedDelivery,
  type WakeableDelivery,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { send } from '../sending/send.js';
import type { Attempted } from './dispatcher.js';

/** For how long a result is tried to be settled while PostgreSQL is away, and the pause between, in milliseconds. */
const SETTLE_PATIENCE_MS = 60_000;
const SETTLE_PAUSE_MS = 250;
/** When a delivery is tried again whose secret this worker cannot open, in milliseconds. */
const KEY_MISSING_DELAY_MS = 60_000;

/** One attempt at one delivery: claim, send, settle, next wake-up. */
export async function workOnDelivery(deps: Deps, deliveryId: string): Promise<Attempted> {
  const claim = await claimDelivery(deps.claims.prisma, deliveryId, randomUUID(), deps.leaseMs);
  if (claim === null) return null;
  const secret = await openSecret(deps, claim);
  if (secret === null) return null;
  const attempt = await send(deps, claim, secret);
  const proves = isProof(attempt.outcome, attempt.statusCode, attempt.durationMs);
  const after = afterAttempt({
    runAttempt: claim.runAttempt,
    outcome: attempt.outcome,
    statusCode: attempt.statusCode,
    runAgeMs: claim.runAgeMs + attempt.durationMs,
    random: deps.random,
  });
  const row = await settle(deps, claim, attempt, after, proves);
  count(deps, claim, attempt, after, row !== null);
  logAttempt(deps, claim, attempt, after, row !== null);
  if (row !== null && after.status === 'pending') {
    // The slot is free for the next delivery meanwhile: the sweep finds what this does not wake.
    void deps.producer.wake({ queue: 'webhook-delivery', row, delayMs: after.delayMs });
  }
  return { proves };
}

/** Our own failure, not the receiver's: it costs no attempt. */
async function openSecret(deps: Deps, claim: ClaimedDelivery): Promise<string | null> {
  try {
    return open(deps.masterKeys, claim.secretSealed, `webhook-secret:${claim.endpointId}:${claim.secretVersion}`);
  } catch (error) {
    deps.logger.error('signing secret not opened', { deliveryId: claim.id, endpointId: claim.endpointId, error });
    await releaseDelivery(deps.database.prisma, claim, KEY_MISSING_DELAY_MS);
    return null;
  }
}

/**
 * The receiver has answered: this is worth patience, also past the lease, because as long as nobody has taken the row
 * over the answer still counts.
 */
async function settle(
  deps: Deps,
  claim: ClaimedDelivery,
  attempt: AttemptRecord,
  after: AfterAttempt,
  proves: boolean,
): Promise<WakeableDelivery | null> {
  const until = performance.now() + SETTLE_PATIENCE_MS;
  for (;;) {
    try {
      return await settleDelivery(deps.database.prisma, claim, attempt, after, proves);
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() + SETTLE_PAUSE_MS > until) {
        deps.logger.error('delivery not settled', { deliveryId: claim.id, attempt: claim.runAttempt, error });
        return null;
      }
      await delay(SETTLE_PAUSE_MS);
    }
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
