import { describe, expect, test } from '@jest/globals';
import {
  afterFailure,
  ATTEMPTS_PER_RUN,
  BACKOFF_SECONDS,
  backoffMs,
  CONCURRENCY_PER_WORKER,
  LEASE_SECONDS,
} from './operation.js';

describe('the retry schedule', () => {
  test('has the numbers of the specification', () => {
    expect(ATTEMPTS_PER_RUN).toBe(8);
    expect([...BACKOFF_SECONDS]).toEqual([5, 30, 120, 600, 1800, 3600, 21600]);
    expect(LEASE_SECONDS).toBe(120);
    expect(CONCURRENCY_PER_WORKER).toBe(4);
  });

  test.each(BACKOFF_SECONDS.map((seconds, index) => [index + 1, seconds] as const))(
    'waits after attempt %i for %i s and up to 20 percent more',
    (attempt, seconds) => {
      expect(backoffMs(attempt, () => 0)).toBe(seconds * 1000);
      expect(backoffMs(attempt, () => 0.5)).toBe(seconds * 1100);
      expect(backoffMs(attempt, () => 1 - Number.EPSILON)).toBeLessThanOrEqual(seconds * 1200);
      expect(backoffMs(attempt, () => 1 - Number.EPSILON)).toBeGreaterThan(seconds * 1199);
    },
  );

  test('spreads the jitter evenly over its range', () => {
    const waits = Array.from({ length: 10_000 }, () => backoffMs(3, Math.random)!);
    const share = (from: number, to: number) => waits.filter((ms) => ms >= from && ms < to).length / waits.length;
    for (let slice = 0; slice < 4; slice++) {
      expect(Math.abs(share(120_000 + slice * 6_000, 126_000 + slice * 6_000) - 0.25)).toBeLessThan(0.03);
    }
  });

  test('ends a run with its eighth attempt', () => {
    for (let attempt = 1; attempt < ATTEMPTS_PER_RUN; attempt++) {
      expect(afterFailure(attempt, () => 0)).toEqual({
        status: 'pending',
        delayMs: BACKOFF_SECONDS[attempt - 1]! * 1000,
      });
    }
    expect(afterFailure(ATTEMPTS_PER_RUN, () => 0)).toEqual({ status: 'failed' });
  });
});
