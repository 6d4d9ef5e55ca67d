import { expect, test } from '@jest/globals';
import { backoffMs } from './wait.js';

test('pauses double from 200 ms to 5 s, and up to half of each is random', () => {
  expect([0, 1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(attempt, 1))).toEqual([
    200, 400, 800, 1600, 3200, 5000, 5000,
  ]);
  expect([0, 1, 50].map((attempt) => backoffMs(attempt, 0))).toEqual([100, 200, 2500]);
});
