const FIRST_MS = 200;
const LONGEST_MS = 5_000;

/**
 * The pause before the n-th try (from 0). The upper half of it is chance, so that those who lost the same gateway do not
 * all come back at once.
 */
export function backoffMs(attempt: number, random: number): number {
  const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return longest * (0.5 + 0.5 * random);
}
