import { expect, test } from '@jest/globals';
import { LocalBuckets } from './local-buckets.js';

test('a local bucket allows a burst, refuses further requests, and returns the time until the next token', () => {
  const buckets = new LocalBuckets(3, 2);
  const taken = Array.from({ length: 4 }, () => buckets.take('key', 0));
  expect(taken.map(({ refused }) => refused)).toEqual([false, false, false, true]);
  expect(taken.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
  expect(taken[3]!.waitMs).toBe(500);
  expect(buckets.take('key', 499).refused).toBe(true);
  expect(buckets.take('key', 500).refused).toBe(false);
});

test('a local bucket refills at its rate, up to the burst', () => {
  const buckets = new LocalBuckets(3, 2);
  for (let n = 0; n < 3; n += 1) buckets.take('key', 0);
  const later = Array.from({ length: 5 }, () => buckets.take('key', 60_000).refused);
  expect(later).toEqual([false, false, false, true, true]);
});

test('local buckets are separate for each caller, and their number is limited', () => {
  const buckets = new LocalBuckets(1, 1);
  expect(buckets.take('a', 0).refused).toBe(false);
  expect(buckets.take('b', 0).refused).toBe(false);
  expect(buckets.take('a', 0).refused).toBe(true);
  for (let n = 0; n < 10_000; n += 1) buckets.take(`other${n}`, 0);
  expect(buckets.take('a', 0).refused).toBe(false);
});
