import { expect, test } from '@jest/globals';
import { agoText, durationText, niceTop } from './format.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');

test.each([
  ['2026-11-22T11:59:58Z', 'just now'],
  ['2026-11-22T12:00:03Z', 'just now'],
  ['2026-11-22T11:58:30Z', '1 min. ago'],
  ['2026-11-22T09:00:00Z', '3 hr. ago'],
  ['2026-11-21T11:00:00Z', 'yesterday'],
  ['2026-11-22T12:10:00Z', 'in 10 min.'],
])('%s is written as %s', (time, text) => {
  expect(agoText(time, NOW)).toBe(text);
});

test('a duration has its two largest units', () => {
  expect([900, 61_000, 3_700_000, 200_000_000].map(durationText)).toEqual(['1 s', '1 min 1 s', '1 h 1 min', '2 d 7 h']);
});

test('the top of a chart is a round number at or above its bars', () => {
  expect([0, 1, 3, 7, 11, 99, 450].map(niceTop)).toEqual([2, 2, 4, 8, 20, 100, 600]);
});
