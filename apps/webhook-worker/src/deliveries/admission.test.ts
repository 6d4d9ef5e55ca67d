import { describe, expect, test } from '@jest/globals';
import type { Lane } from '@callplane/core';
import fc from 'fast-check';
import { Admission, WAITING_MAX } from './admission.js';

/** Turns of an admission, which end when they are told to. */
function open() {
  const admission = new Admission(1);
  const begun: string[] = [];
  const sentBack: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    admission,
    begun,
    sentBack,
    running: ends,
    /** @param slotMs what the turn counts as use of its environment while it runs */
    async add(name: string, lane: Lane, environmentId: string, slotMs: number): Promise<void> {
      const turn = { turn: name, endpointId: name, environmentId, slotMs, lane, ticket: 0 };
      const result = admission.inSlot(turn, () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      });
      void result.then((next) => (next === undefined ? undefined : sentBack.push(name)));
      await settled();
    },
    async end(name: string): Promise<void> {
      ends.get(name)?.();
      ends.delete(name);
      await settled();
    },
  };
}
const settled = () => new Promise(setImmediate);

describe('a free slot', () => {
  test.each(['fast', 'slow'] as const)(
    'goes to the turn of the %s lane whose environment has used least',
    async (lane) => {
      const { begun, add, end } = open();
      const slots = lane === 'fast' ? 4 : 3;
      const used = [900, 500, 300, 100].slice(-slots);
      for (const slotMs of used) await add(`first ${slotMs}`, lane, `env_${slotMs}`, slotMs);
      expect(begun).toHaveLength(slots);
      for (const slotMs of used.slice(0, -1)) await add(`second ${slotMs}`, lane, `env_${slotMs}`, slotMs);
      await add('new', lane, 'env_new', 64);
      await end('first 100');
      const order = [
        'new',
        ...used
          .slice(0, -1)
          .reverse()
          .map((slotMs) => `second ${slotMs}`),
      ];
      for (const [n, name] of order.entries()) {
        expect(begun[slots + n]).toBe(name);
        await end(name);
      }
    },
  );

  test('goes to the turn that came first, of environments with the same use', async () => {
    const { begun, add, end } = open();
    for (const n of [1, 2, 3, 4, 5, 6, 7]) await add(`turn ${n}`, 'fast', `env_${n}`, 64);
    for (const n of [1, 2, 3]) await end(`turn ${n}`);
    expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `turn ${n}`));
  });
});

test('the lanes get slots in the order in which their turns came, whatever their environments have used', async () => {
  const { begun, add, end } = open();
  for (const n of [1, 2, 3]) await add(`slow ${n}`, 'slow', `env_${n}`, 9000);
  await add('fast 1', 'fast', 'env_4', 64);
  for (const n of [1, 2, 3]) {
    await add(`slow ${n}, again`, 'slow', `env_${n}`, 9000);
    for (const m of [1, 2]) await add(`fast ${n}.${m}`, 'fast', `env_fast_${n}.${m}`, 64);
  }
  for (const n of [1, 2, 3]) await end(`slow ${n}`);
  const slow = [1, 2, 3].map((n) => `slow ${n}, again`);
  expect(begun.slice(4)).toEqual([slow[0], 'fast 1.1', 'fast 1.2']);
  await end('fast 1');
  await end('fast 1.1');
  expect(begun.slice(7)).toEqual([slow[1], 'fast 2.1']);
});

test.each(['fast', 'slow'] as const)(
  'turns of an environment wait for a slot of the %s lane, however many turns of another one wait',
  async (lane) => {
    const { begun, sentBack, add, end } = open();
    const slots = lane === 'fast' ? 4 : 3;
    const crowd = slots + WAITING_MAX + 50;
    for (let n = 0; n < crowd; n += 1) await add(`crowd ${n}`, lane, 'env_crowd', 900);
    expect(sentBack).toHaveLength(50);
    const others = [1, 2, 3].map((n) => `other ${n}`);
    for (const name of others) await add(name, lane, `env_${name}`, 64);
    expect(sentBack).toHaveLength(53);
    // The earliest keep their places.
    expect(sentBack).not.toContain(`crowd ${slots}`);
    for (let n = 0; n < 4; n += 1) await end(begun[n] ?? '');
    expect(begun).toEqual(expect.arrayContaining(others));
    // The last one of an environment that has used more than all others is sent back itself.
    for (let n = 0; n < 10; n += 1) await add(`late ${n}`, lane, 'env_crowd', 900);
    expect(sentBack.at(-1)).toBe('late 9');
  },
);

test('after a long attempt, its endpoint leaves the fast lane, and others of its environment until they are quick again', () => {
  const { admission } = open();
  const turnOf = (endpointId: string, environmentId = 'env_mixed') => {
    return { turn: endpointId, endpointId, environmentId, slotMs: 64, lane: 'fast' as const, ticket: 0 };
  };
  const laneAfter = (...turn: Parameters<typeof turnOf>) => admission.again(turnOf(...turn)).announce[0]?.lane;
  admission.onQuick(turnOf('quick'));
  for (const hung of ['hung 1', 'hung 2', 'hung 3']) {
    admission.onSlow(turnOf(hung));
    admission.onQuick(turnOf(hung));
    expect(laneAfter(hung)).toBe('slow');
    expect(admission.placeOf(turnOf(hung), 1)).toMatchObject({ announce: [{ lane: 'slow' }] });
    // It has answered since the long attempt began.
    expect(laneAfter('quick')).toBe('fast');
  }
  expect(laneAfter('silent')).toBe('slow');
  admission.onQuick(turnOf('silent'));
  expect(laneAfter('silent')).toBe('fast');
  expect(laneAfter('silent', 'env_other')).toBe('fast');
});

test('at most four turns run, three of them in the slow lane, and none waits for a slot that it may have', async () => {
  const step = fc.oneof(
    fc.record({ lane: fc.constantFrom<Lane>('fast', 'slow'), slotMs: fc.nat({ max: 2000 }) }),
    fc.nat({ max: 3 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { admission, running, begun, add, end } = open();
      const added: Record<Lane, number> = { fast: 0, slow: 0 };
      for (const [at, each] of steps.entries()) {
        if (typeof each === 'number') {
          await end([...running.keys()][each] ?? '');
        } else {
          added[each.lane] += 1;
          // Each of an environment of its own, so that none is sent back.
          await add(`${each.lane} ${at}`, each.lane, `env_${at}`, each.slotMs);
        }
        const isSlow = (name: string) => name.startsWith('slow');
        const slow = [...running.keys()].filter(isSlow).length;
        expect(admission.inUse).toBe(running.size);
        expect([running.size <= 4, slow <= 3]).toEqual([true, true]);
        const begunSlow = begun.filter(isSlow).length;
        const waiting = { slow: added.slow - begunSlow, fast: added.fast - (begun.length - begunSlow) };
        if (running.size < 4) expect([waiting.fast, slow < 3 ? waiting.slow : 0]).toEqual([0, 0]);
      }
    }),
  );
});
