/**
 * The lane of an endpoint decides which slots it may use. It depends on the expected slot time, not on success: a 503
 * within 5 ms costs no slot time.
 */
export type Lane = 'fast' | 'slow' | 'unknown';

/** Expected slot time of an endpoint, in milliseconds; null if it was never tried. */
export type SlotMs = number | null;

/** Expected slot time from which an endpoint counts as slow. */
export const SLOW_FROM_MS = 1000;
/** Expected slot time from which an endpoint counts as one that never responds. */
const HUNG_FROM_MS = 5000;
/** Slot time charged for an attempt without a response: the contract's deadline. */
export const HUNG_SLOT_MS = 10_000;
/** Expected slot time of an endpoint that a release without `slot_ms` marked as proven. */
const PROVEN_MS = 100;
/** Share of the expected slot time that remains after a shorter attempt. */
const DECAY = 0.7;

export function laneOf(slotMs: SlotMs): Lane {
  if (slotMs === null || slotMs >= HUNG_FROM_MS) return 'unknown';
  return slotMs >= SLOW_FROM_MS ? 'slow' : 'fast';
}

/** Derives the expected slot time from the endpoint's row. */
export function slotMsOfRow(row: { slotMs: number | null; proven: boolean; failingSince: Date | null }): SlotMs {
  if (row.slotMs !== null) return row.slotMs;
  if (row.proven) return PROVEN_MS;
  return row.failingSince === null ? null : HUNG_SLOT_MS;
}

/**
 * The expected slot time after an attempt. It rises at once and falls slowly: an endpoint that hung must respond
 * quickly seven times before it may use every slot again.
 * @param hung whether the attempt got no response in time.
 */
export function slotMsAfter(slotMs: SlotMs, attempt: { durationMs: number; hung: boolean }): number {
  const tookMs = attempt.hung ? Math.max(HUNG_SLOT_MS, attempt.durationMs) : attempt.durationMs;
  return slotMs === null ? tookMs : Math.max(tookMs, slotMs * DECAY);
}
