import type { ClaimedDelivery } from '@callplane/db';

/** When a claim was sent, and when it was answered. */
export interface ClaimTimes {
  askedAtMs: number;
  answeredAtMs: number;
}

/** A claimed delivery that waits for a slot. */
export interface Held extends ClaimTimes {
  claim: ClaimedDelivery;
}

/**
 * When a claimed delivery must have its slot: within its lease, because another worker may hold it then, and soon under
 * a maximum rate, because it would begin beside the attempts of later tokens. The lease may have begun when the claim
 * was sent. The time after a token counts from the answer, because a slow network would use it up before.
 */
export function startByMs(
  { startWithinMs }: Pick<ClaimedDelivery, 'startWithinMs'>,
  { askedAtMs, answeredAtMs }: ClaimTimes,
  leaseMs: number,
): number {
  return Math.min(askedAtMs + leaseMs, answeredAtMs + (startWithinMs ?? Infinity));
}

/** The delivery at the start of its attempt, after it has waited for a slot. */
export function startOf(claim: ClaimedDelivery, waitedMs: number): ClaimedDelivery {
  return { ...claim, startedAt: new Date(claim.startedAt.getTime() + waitedMs), lagMs: claim.lagMs + waitedMs };
}
