import { expect, test } from '@jest/globals';
import { TokenBucket } from './token-bucket.js';

test('holds its burst, fills up at its rate, and no further', () => {
  const bucket = new TokenBucket({ perSecond: 2, burst: 3 }, 0);
  const taken = (nowMs: number, tries: number) => Array.from({ length: tries }, () => bucket.take(nowMs));
  expect(taken(0, 4)).toEqual([true, true, true, false]);
  expect(taken(500, 2)).toEqual([true, false]);
  expect(taken(60_000, 4)).toEqual([true, true, true, false]);
});

test('without a rate there is no limit; a burst below the rate counts as the rate', () => {
  const unlimited = new TokenBucket({ perSecond: 0, burst: 1 }, 0);
  expect(Array.from({ length: 100 }, () => unlimited.take(0)).every(Boolean)).toBe(true);
  const bucket = new TokenBucket({ perSecond: 2, burst: 1 }, 0);
  expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([true, true, false]);
});
