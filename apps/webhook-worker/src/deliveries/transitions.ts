import type { AfterAttempt } from '@callplane/core';
import { releaseDelivery, type ClaimedDelivery } from '@callplane/db';
import { leaseOf, logTransition, type Transition } from '@callplane/runtime';
import type { Deps } from '../deps.js';
import type { Held } from './held.js';

/** Logs the transition of a delivery that this worker has claimed, at level debug. */
function note(
  { logger }: Pick<Deps, 'logger'>,
  transition: Transition,
  claim: Pick<
    ClaimedDelivery,
    'id' | 'endpointId' | 'leaseToken' | 'lineRoomId' | 'lineSequence' | 'replayCount' | 'runAttempt'
  >,
  sinceMs: number,
  untilMs?: number,
): void {
  logTransition(logger, transition, () => ({
    subject: 'delivery',
    row: claim.id,
    lease: leaseOf(claim.leaseToken),
    run: claim.replayCount + 1,
    attempt: claim.runAttempt,
    tookMs: performance.now() - sinceMs,
    ...(untilMs === undefined ? {} : { untilMs }),
    ...(claim.lineRoomId === null || claim.lineSequence === null
      ? {}
      : { endpoint: claim.endpointId, room: claim.lineRoomId, sequence: claim.lineSequence }),
  }));
}

/** @returns the claim that was logged. */
export function noteClaim(deps: Pick<Deps, 'logger' | 'leaseMs'>, held: Held): Held {
  note(deps, 'claim', held.claim, held.askedAtMs, deps.leaseMs);
  return held;
}

/** @param sinceMs when the outcome was given to {@link Deps.settling}. */
export function noteSettled(
  deps: Pick<Deps, 'logger'>,
  claim: ClaimedDelivery,
  after: AfterAttempt,
  sinceMs: number,
): void {
  if (after.status === 'succeeded') note(deps, 'complete', claim, sinceMs);
  else if (after.status === 'pending') note(deps, 'retry', claim, sinceMs, after.delayMs);
  else note(deps, after.reason === 'attempts_exhausted' ? 'fail' : 'failOld', claim, sinceMs);
}

/** Releases a claimed row, whose attempt does not count. */
export async function release(
  deps: Pick<Deps, 'database' | 'logger'>,
  claim: ClaimedDelivery,
  delayMs: number,
): Promise<void> {
  const startedAtMs = performance.now();
  const isReleased = await releaseDelivery(deps.database.sql, claim, delayMs);
  if (isReleased) note(deps, 'release', claim, startedAtMs, delayMs);
}
