/** Expected duration of an endpoint's next attempt, in milliseconds; null if the endpoint was never tried. */
export type SlotMs = number | null;

/**
 * The queue in which an endpoint waits for its turns. It depends on the expected duration, not on success: a 503 within
 * 5 ms costs no time. Turns of the slow lane never use all slots of a worker.
 */
export type Lane = 'fast' | 'slow';

/** Expected duration from which an endpoint belongs into the slow lane, in milliseconds. */
export const SLOW_FROM_MS = 1000;
/** Expected duration from which an endpoint gets one attempt at a time, in milliseconds. */
const HUNG_FROM_MS = 5000;
/** Duration that counts for an attempt without an answer, in milliseconds: the contract's deadline. */
const HUNG_SLOT_MS = 10_000;
/** Shorter durations count as this one, in milliseconds. */
export const SLOT_MS_MIN = 64;
/** Share of the expected duration that remains after a shorter attempt. */
const DECAY = 0.5;

/** Deliveries that one turn takes of an endpoint that answers within {@link SLOT_MS_MIN}. Others get one at a time. */
export const TURN_DELIVERIES_MAX = 8;
/** Turns of one endpoint that may run at once. */
const TICKETS_MAX = 32;

export function laneOf(slotMs: SlotMs): Lane {
  return slotMs !== null && slotMs < SLOW_FROM_MS ? 'fast' : 'slow';
}

/** How many turns of an endpoint may run at once: one until the endpoint has answered within a few seconds. */
export function ticketsOf(slotMs: SlotMs, maxConcurrent: number | null): number {
  if (slotMs === null || slotMs >= HUNG_FROM_MS) return 1;
  return Math.min(maxConcurrent ?? TICKETS_MAX, TICKETS_MAX);
}

/**
 * The expected duration after an attempt. It rises at once and falls slowly: an endpoint that hung must answer quickly
 * four times before it leaves the slow lane.
 * @param hung whether the attempt got no answer in time.
 */
export function slotMsAfter(slotMs: SlotMs, attempt: { durationMs: number; hung: boolean }): number {
  const tookMs = attempt.hung ? Math.max(HUNG_SLOT_MS, attempt.durationMs) : attempt.durationMs;
  return Math.round(Math.max(SLOT_MS_MIN, tookMs, (slotMs ?? 0) * DECAY));
}
