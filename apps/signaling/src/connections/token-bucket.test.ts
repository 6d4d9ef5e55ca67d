import { expect, test } from '@jest/globals';
import { TokenBucket } from './token-bucket.js';

test('starts with its burst, refills at its rate, and never holds more than its burst', () => {
  const bucket = new TokenBucket({ perSecond: 2, burst: 3 }, 0);
  const taken = (nowMs: number, tries: number) => Array.from({ length: tries }, () => bucket.take(nowMs));
  expect(taken(0, 4)).toEqual([true, true, true, false]);
  expect(taken(500, 2)).toEqual([true, false]);
  expect(taken(60_000, 4)).toEqual([true, true, true, false]);
});

test('has no limit without a rate, and raises a burst below the rate to the rate', () => {
  const unlimited = new TokenBucket({ perSecond: 0, burst: 1 }, 0);
  expect(Array.from({ length: 100 }, () => unlimited.take(0)).every(Boolean)).toBe(true);
  const bucket = new TokenBucket({ perSecond: 2, burst: 1 }, 0);
  expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([true, true, false]);
});
