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
 * When a claimed delivery must have its slot. After its lease another worker may hold the delivery. Under a maximum
 * rate a late attempt would coincide with those of later tokens, and more would begin in one second than is allowed.
 *
 * The lease counts from the sending of the claim, because it may have begun then. The time after a token counts from
 * the answer, so that a slow network does not use it up.
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
