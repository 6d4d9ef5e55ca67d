import { describe, expect, test } from '@jest/globals';
import { HUNG_SLOT_MS, laneOf, slotMsAfter, slotMsOfRow } from './slot-time.js';

describe('the expected slot time of an endpoint', () => {
  test.each([
    [null, 'unknown'],
    [0, 'fast'],
    [999, 'fast'],
    [1000, 'slow'],
    [4999, 'slow'],
    [5000, 'unknown'],
    [10_000, 'unknown'],
  ] as const)('of %s ms belongs to the lane %s', (slotMs, lane) => {
    expect(laneOf(slotMs)).toBe(lane);
  });

  test('rises at once, and is fast again after seven quick responses', () => {
    let slotMs = slotMsAfter(20, { durationMs: 2000, hung: true });
    expect(slotMs).toBe(HUNG_SLOT_MS);
    const lanes = Array.from({ length: 7 }, () =>
      laneOf((slotMs = slotMsAfter(slotMs, { durationMs: 5, hung: false }))),
    );
    expect(lanes).toEqual(['unknown', 'slow', 'slow', 'slow', 'slow', 'slow', 'fast']);
  });

  test('of an untried endpoint equals the duration of its first attempt', () => {
    expect(slotMsAfter(null, { durationMs: 30, hung: false })).toBe(30);
  });

  test('is derived from rows of releases that did not write it', () => {
    const since = new Date(0);
    expect(slotMsOfRow({ slotMs: 300, proven: true, failingSince: since })).toBe(300);
    expect(laneOf(slotMsOfRow({ slotMs: null, proven: true, failingSince: null }))).toBe('fast');
    expect(slotMsOfRow({ slotMs: null, proven: false, failingSince: since })).toBe(HUNG_SLOT_MS);
    expect(slotMsOfRow({ slotMs: null, proven: false, failingSince: null })).toBeNull();
  });
});
