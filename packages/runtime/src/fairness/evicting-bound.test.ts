import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EvictingBound, type Holder } from './evicting-bound.js';

test('all holders together hold no more than the bound, and the ones that hold most are cut', () => {
  const change = fc.record({ holder: fc.nat({ max: 5 }), held: fc.nat({ max: 80 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const all = new EvictingBound(100);
      const held = new Map<Holder, number>();
      let cut: number[] = [];
      const holders = Array.from({ length: 6 }, (): Holder => {
        const holder: Holder = {
          stalledSeconds: 0,
          cut: () => {
            cut.push(held.get(holder)!);
            held.delete(holder);
          },
        };
        return holder;
      });
      for (const { holder, held: bytes } of changes) {
        cut = [];
        held.set(holders[holder]!, bytes);
        const wanted = [...held.values()].reduce((sum, each) => sum + each, 0);
        all.set(holders[holder]!, bytes);
        const kept = [...held.values()];
        expect(all.total).toBe(kept.reduce((sum, each) => sum + each, 0));
        expect(all.total).toBeLessThanOrEqual(100);
        if (wanted <= 100) expect(cut).toEqual([]);
        for (const one of cut) expect(one).toBeGreaterThanOrEqual(Math.max(0, ...kept));
      }
    }),
  );
});
