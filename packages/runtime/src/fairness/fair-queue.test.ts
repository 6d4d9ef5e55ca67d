import { describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import { FairQueue } from './fair-queue.js';

const takeOne = <Item>(queue: FairQueue<Item>): Item | undefined => {
  let taken = 0;
  return queue.take(() => (taken++ === 0 ? 'take' : 'stop'))[0];
};

describe('a fair queue', () => {
  test('passes over a key without losing its turn, and ends at the word of its judge', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'b1', 'c1']) queue.push(item.slice(0, 1), item);
    expect(queue.take((key) => (key === 'a' ? 'skip' : key === 'b' ? 'take' : 'stop'))).toEqual(['b1']);
    expect(queue.take(() => 'take')).toEqual(['a1', 'c1', 'a2']);
    expect(queue.size).toBe(0);
  });

  test('keeps the turn of a key without items as long as it is asked to', () => {
    const running = new Set(['a']);
    const queue = new FairQueue<string>({ keepsTurn: (key) => running.has(key) });
    for (const item of ['a1', 'b1', 'b2']) queue.push(item.slice(0, 1), item);
    expect([takeOne(queue), takeOne(queue)]).toEqual(['a1', 'b1']);
    queue.push('a', 'a2');
    expect([takeOne(queue), takeOne(queue)]).toEqual(['a2', 'b2']);
    running.clear();
    for (const item of ['b3', 'a3']) queue.push(item.slice(0, 1), item);
    expect(queue.take(() => 'take')).toEqual(['a3', 'b3']);
    for (const item of ['b4', 'a4']) queue.push(item.slice(0, 1), item);
    expect(queue.take(() => 'take')).toEqual(['b4', 'a4']);
  });

  test('refuses items beyond its bounds, and drops one that has waited too long', async () => {
    const expired: string[] = [];
    const waitingMax = { all: 3, perKey: 2 };
    const queue = new FairQueue<string>({ waitingMax, waitMsMax: 20, onExpired: (item) => expired.push(item) });
    const refusals = ['a1', 'a2', 'a3', 'b1', 'b2'].map((item) => queue.push(item.slice(0, 1), item));
    expect(refusals).toEqual([null, null, '2 items of one key', null, '3 items']);
    expect(takeOne(queue)).toBe('a1');
    await eventually(() => expired.length === 2);
    expect([expired, queue.size, takeOne(queue)]).toEqual([['a2', 'b1'], 0, undefined]);
  });

  test('gives a key no second turn while another key waits, and keeps the order of the items of a key', () => {
    const step = fc.oneof(fc.nat({ max: 4 }), fc.constant('take' as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const queue = new FairQueue<number>();
        const waiting = new Map<number, number[]>();
        /** The turns that each key has seen other keys take since it began to wait or took its own. */
        const passed = new Map<number, number[]>();
        for (const [at, key] of steps.entries()) {
          if (key !== 'take') {
            queue.push(String(key), at);
            const items = waiting.get(key) ?? [];
            if (items.push(at) === 1) passed.set(key, []);
            waiting.set(key, items);
            continue;
          }
          const item = takeOne(queue);
          const [served] = [...waiting].find(([, [oldest]]) => oldest === item && item !== undefined) ?? [];
          if (served === undefined) {
            expect([item, sizeOf(waiting)]).toEqual([undefined, 0]);
            continue;
          }
          waiting.get(served)!.shift();
          passed.set(served, []);
          for (const [other, items] of waiting) {
            if (other === served || items.length === 0) continue;
            expect(passed.get(other)).not.toContain(served);
            passed.get(other)!.push(served);
          }
          expect(queue.size).toBe(sizeOf(waiting));
        }
      }),
    );
  });
});

function sizeOf(waiting: ReadonlyMap<number, readonly number[]>): number {
  return [...waiting.values()].reduce((sum, items) => sum + items.length, 0);
}
