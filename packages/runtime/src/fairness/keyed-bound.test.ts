import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { KeyedBound } from './keyed-bound.js';

const sum = (amounts: Iterable<number>) => [...amounts].reduce((total, each) => total + each, 0);

describe('a keyed bound', () => {
  test('gives back what a key took, once', () => {
    const bound = new KeyedBound({ max: 3, perKeyMax: 2 });
    const giveBack = bound.take('a', 2)!;
    expect([bound.take('a'), bound.heldBy('a')]).toEqual([null, 2]);
    giveBack();
    giveBack();
    expect([bound.total, bound.held.size]).toEqual([0, 0]);
    expect([bound.take('a', 2), bound.take('b'), bound.take('b')].map((one) => one !== null)).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('allows each key its share at any time, no key more than its bounds, and counts exactly', () => {
    const request = fc.record({ key: fc.nat({ max: 5 }), change: fc.integer({ min: -80, max: 80 }) });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 60 }), (requests) => {
        const bound = new KeyedBound<number>({ max: 200, perKeyMax: 120, sharedFrom: 100 });
        const held = new Map<number, number>();
        for (const { key, change } of requests) {
          const own = held.get(key) ?? 0;
          const isAllowed = change <= 0 || bound.allows(key, change);
          if (isAllowed) {
            const after = Math.max(0, own + change);
            bound.add(key, after - own);
            if (after === 0) held.delete(key);
            else held.set(key, after);
          }
          expect([...bound.held]).toEqual(expect.arrayContaining([...held]));
          expect([bound.held.size, bound.total]).toEqual([held.size, sum(held.values())]);
          expect(bound.total).toBeLessThanOrEqual(200);
          expect(Math.max(0, ...held.values())).toBeLessThanOrEqual(120);
          // Above the shared total, a key that takes more has at most an equal share.
          if (isAllowed && change > 0 && bound.total > 100) {
            expect(held.get(key)!).toBeLessThanOrEqual(100 / held.size);
          }
          const share = Math.floor(100 / (held.size + 1));
          if (bound.total + share <= 200) expect(bound.allows(6, share)).toBe(true);
        }
      }),
    );
  });
});
