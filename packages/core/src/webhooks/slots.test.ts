import { describe, expect, test } from '@jest/globals';
import { SlotUsage, ticketsOf } from './slots.js';

describe('the priority of an environment', () => {
  test('grows with its use of slots, and fades', () => {
    const usage = new SlotUsage();
    expect(usage.priority('a', 0)).toBe(1);
    usage.begin('a', 10_000, 0)(10_000);
    const after = usage.priority('a', 10_000);
    expect(after).toBeGreaterThan(500);
    expect(usage.priority('a', 40_000)).toBeLessThan(after / 2);
    expect(usage.priority('b', 10_000)).toBe(1);
  });

  test('sends a job back whose environment has used much more since, and a new endpoint only after a long use', () => {
    const usage = new SlotUsage();
    usage.begin('a', 1000, 0)(1000);
    expect(usage.isAhead('a', 1, 1000)).toBe(true);
    expect(usage.isAhead('a', usage.priority('a', 1000), 1000)).toBe(false);
    expect(usage.isAhead('a', 0, 1000)).toBe(false);
    usage.begin('a', 10_000, 1000)(11_000);
    expect(usage.isAhead('a', 0, 11_000)).toBe(true);
  });

  test('lets hostile environments with attempts of 0.9 s not hold back one that uses little', () => {
    const usage = new SlotUsage();
    let nowMs = 0;
    // 100 environments in turn on four slots, and one with 5 attempts of 5 ms a second.
    for (let turn = 0; turn < 2000; turn += 1) {
      usage.begin(`hostile ${turn % 100}`, 900, nowMs)(nowMs + 900);
      if (turn % 4 === 3) nowMs += 900;
      if (turn % 4 === 3) for (let n = 0; n < 4; n += 1) usage.begin('honest', 64, nowMs)(nowMs + 5);
    }
    const hostile = Array.from({ length: 100 }, (_, n) => usage.priority(`hostile ${n}`, nowMs));
    expect(usage.priority('honest', nowMs)).toBeLessThan(Math.min(...hostile) * 1.2);
  });
});

describe('the expected duration of an endpoint', () => {
  test('bounds the turns at once', () => {
    expect([ticketsOf(null, null), ticketsOf(5000, null), ticketsOf(4999, null), ticketsOf(64, 2)]).toEqual([
      1, 1, 32, 2,
    ]);
  });
});
