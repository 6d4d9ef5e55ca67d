const FIRST_MS = 50;
const MAX_MS = 1000;

/** Pause before another attempt to connect to Redis or to a Sentinel, in milliseconds: doubles, up to a second. */
export function reconnectDelayMs(attempt: number): number {
  return Math.min(FIRST_MS * 2 ** Math.min(attempt, 10), MAX_MS);
}
