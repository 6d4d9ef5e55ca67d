import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SharedBound } from './shared-bound.js';

test('up to the bound a holder may hold anything, and beyond it an equal share', () => {
  const bound = new SharedBound(100);
  expect([bound.allows(0, 100), bound.allows(0, 101)]).toEqual([true, false]);
  bound.change(0, 60);
  bound.change(0, 40);
  // 50 each for two holders, and 33 for a third one.
  expect([bound.allows(60, 0), bound.allows(60, 1), bound.allows(40, 10), bound.allows(40, 11)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect([bound.allows(0, 33), bound.allows(0, 34)]).toEqual([true, false]);
  bound.change(60, 0);
  expect([bound.total, bound.allows(40, 60), bound.allows(40, 61)]).toEqual([40, true, false]);
});

test('whatever holders ask for, one without anything always gets its share, and none keeps more than its share', () => {
  const request = fc.record({ holder: fc.nat({ max: 5 }), more: fc.integer({ min: -80, max: 80 }) });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 60 }), (requests) => {
      const bound = new SharedBound(100);
      const held = new Map<number, number>();
      for (const { holder, more } of requests) {
        const own = held.get(holder) ?? 0;
        const after = Math.max(0, own + more);
        if (more > 0 && !bound.allows(own, more)) continue;
        bound.change(own, after);
        held.set(holder, after);
        expect(bound.total).toBe([...held.values()].reduce((sum, each) => sum + each, 0));
        const holders = [...held.values()].filter((each) => each > 0).length;
        expect(bound.allows(0, Math.floor(100 / (holders + 1)))).toBe(true);
        const mayKeep = (each: number): boolean => bound.total <= 100 || each <= 100 / holders;
        for (const each of held.values()) if (each > 0) expect(bound.allows(each, 0)).toBe(mayKeep(each));
      }
    }),
  );
});
