const FIRST_MS = 200;
const LONGEST_MS = 5_000;

/**
 * The pause before attempt n (from 0). Its upper half is random, so that the clients of a lost gateway do not all come
 * back at once.
 */
export function backoffMs(attempt: number, random: number): number {
  const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return longest * (0.5 + 0.5 * random);
}
