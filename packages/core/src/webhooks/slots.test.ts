import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CONCURRENCY_PER_WORKER } from '../operations/schedule.js';
import { Slots, type Lane, type Waiting } from './slots.js';

/** Slots whose deliveries run until the test ends them, and that note who started. */
function worker({ total = CONCURRENCY_PER_WORKER, suspectsMax = 2 }: { total?: number; suspectsMax?: number } = {}) {
  const slots = new Slots({ total, suspectsMax });
  const started: string[] = [];
  const running = new Map<string, Lane>();
  const enqueue = (id: string, lane: Lane, changes: Partial<Omit<Waiting, 'id' | 'lane' | 'start'>> = {}) =>
    slots.enqueue({
      id,
      endpointId: id.split('/')[0]!,
      lane,
      isNew: false,
      isRetry: false,
      ...changes,
      start: (inLane) => {
        started.push(id);
        running.set(id, inLane);
      },
    });
  const end = (id: string) => {
    const lane = running.get(id)!;
    running.delete(id);
    slots.release(lane);
  };
  const startedBy = (action: () => void) => {
    const before = started.length;
    action();
    return started.slice(before);
  };
  return { slots, started, running, enqueue, end, startedBy };
}

describe('the slots of a worker', () => {
  test('an endpoint that is proven uses all of them while nobody else waits', () => {
    const { slots, started, enqueue } = worker();
    for (const n of [1, 2, 3, 4, 5]) enqueue(`a/${n}`, 'proven');
    expect(started).toEqual(['a/1', 'a/2', 'a/3', 'a/4']);
    expect([slots.inUse, slots.waiting('proven')]).toEqual([4, 1]);
  });

  test('suspects never hold more than two, even when nobody else waits', () => {
    const { slots, started, enqueue } = worker();
    for (const endpoint of ['a', 'b', 'c', 'd']) enqueue(`${endpoint}/1`, 'suspect');
    expect(started).toEqual(['a/1', 'b/1']);
    expect([slots.inUse, slots.waiting('suspect')]).toEqual([2, 2]);
    enqueue('p/1', 'proven');
    enqueue('p/2', 'proven');
    expect(started.slice(2)).toEqual(['p/1', 'p/2']);
  });

  test('when both lanes wait suspects get one slot, and the proven get the others', () => {
    const { started, running, enqueue, end, startedBy } = worker();
    for (const n of [1, 2, 3, 4]) enqueue(`p/${n}`, 'proven');
    for (const n of [1, 2, 3]) enqueue(`s/${n}`, 'suspect');
    for (const n of [5, 6, 7, 8]) enqueue(`p/${n}`, 'proven');
    expect(startedBy(() => end('p/1'))).toEqual(['s/1']);
    for (const id of ['p/2', 'p/3', 'p/4', 'p/5']) end(id);
    expect(started.slice(-4)).toEqual(['p/5', 'p/6', 'p/7', 'p/8']);
    expect([...running.values()].filter((lane) => lane === 'suspect')).toHaveLength(1);
    expect(startedBy(() => end('s/1'))).toEqual(['s/2']);
    // Nobody proven waits any more.
    expect(startedBy(() => end('p/6'))).toEqual(['s/3']);
  });

  test('first attempts go before retries', () => {
    const { enqueue, end, startedBy } = worker({ total: 1, suspectsMax: 1 });
    enqueue('x/0', 'proven');
    enqueue('a/retry', 'proven', { isRetry: true });
    enqueue('b/retry', 'proven', { isRetry: true });
    enqueue('b/first', 'proven');
    expect(startedBy(() => end('x/0'))).toEqual(['b/first']);
    expect(startedBy(() => end('b/first'))).toEqual(['a/retry']);
    expect(startedBy(() => end('a/retry'))).toEqual(['b/retry']);
  });

  test('endpoints never tried go before those that failed, each with one delivery', () => {
    const { enqueue, end, startedBy } = worker({ total: 1, suspectsMax: 1 });
    enqueue('x/0', 'suspect');
    enqueue('failed/1', 'suspect');
    for (const n of [1, 2, 3]) enqueue(`new/${n}`, 'suspect', { isNew: true });
    expect(startedBy(() => end('x/0'))).toEqual(['new/1']);
    enqueue('new/4', 'suspect', { isNew: true });
    enqueue('newer/1', 'suspect', { isNew: true });
    expect(startedBy(() => end('new/1'))).toEqual(['newer/1']);
    expect(startedBy(() => end('newer/1'))).toEqual(['failed/1']);
    expect(startedBy(() => end('failed/1'))).toEqual(['new/2']);
  });

  test('one endpoint with a long queue delays no other', () => {
    const { enqueue, end, started } = worker({ total: 1, suspectsMax: 1 });
    for (let n = 0; n < 50; n++) enqueue(`long/${n}`, 'proven');
    enqueue('a/0', 'proven');
    enqueue('b/0', 'proven');
    enqueue('a/1', 'proven');
    for (let n = 0; n < 5; n++) end(started.at(-1)!);
    expect(started).toEqual(['long/0', 'long/1', 'a/0', 'b/0', 'long/2', 'a/1']);
  });

  test('four endpoints that hang leave room for the proven and for a new one', () => {
    const { enqueue, end, started, startedBy } = worker();
    for (const endpoint of ['t1', 't2', 't3', 't4']) {
      for (let n = 0; n < 50; n++) enqueue(`${endpoint}/${n}`, 'suspect', { isNew: true });
    }
    // The first came when nobody else waited.
    expect(started).toEqual(['t1/0', 't1/1']);
    end('t1/0');
    expect(started.at(-1)).toBe('t4/0');
    expect(startedBy(() => enqueue('healthy/0', 'proven'))).toEqual(['healthy/0']);
    end('t1/1');
    end('t4/0');
    expect(started.slice(-2)).toEqual(['t3/0', 't2/0']);
    enqueue('new/0', 'suspect', { isNew: true });
    expect(startedBy(() => end('t3/0'))).toEqual(['new/0']);
  });

  test('what waits for an endpoint changes its lane with it', () => {
    const { slots, enqueue, end, startedBy } = worker();
    for (const id of ['t1/1', 'ok/1', 't1/2', 'ok/2', 'ok/3']) enqueue(id, 'suspect', { isNew: true });
    expect(startedBy(() => end('ok/1'))).toEqual(['t1/2']);
    expect(startedBy(() => slots.setLane('ok', 'proven'))).toEqual(['ok/2', 'ok/3']);
    enqueue('ok/4', 'proven');
    enqueue('ok/5', 'proven');
    expect([slots.waiting('proven'), slots.waiting('suspect')]).toEqual([2, 0]);
    slots.setLane('ok', 'suspect');
    slots.setLane('nobody', 'suspect');
    expect([slots.waiting('proven'), slots.waiting('suspect')]).toEqual([0, 2]);
    // It was started as a proven one and gives that slot back.
    end('ok/2');
    expect(slots.inUse).toBe(3);
  });

  test('what was removed does not start; what does not wait cannot be removed', () => {
    const { slots, enqueue, end, startedBy } = worker({ total: 1, suspectsMax: 1 });
    for (const n of [1, 2, 3]) enqueue(`a/${n}`, 'proven');
    expect([slots.remove('a/2'), slots.remove('a/2'), slots.remove('a/1'), slots.remove('other')]).toEqual([
      ...[true, false, false, false],
    ]);
    expect(startedBy(() => end('a/1'))).toEqual(['a/3']);
    enqueue('a/2', 'proven');
    expect(startedBy(() => end('a/3'))).toEqual(['a/2']);
  });

  test('a delivery that ends within its start keeps the queue moving', () => {
    const slots = new Slots({ total: 1, suspectsMax: 1 });
    const started: number[] = [];
    slots.enqueue({ id: 'x', endpointId: 'e', lane: 'proven', isNew: false, isRetry: false, start: () => undefined });
    for (let n = 0; n < 20_000; n++) {
      const start = (lane: Lane) => {
        started.push(n);
        slots.release(lane);
      };
      slots.enqueue({ id: `${n}`, endpointId: `e${n % 3}`, lane: 'proven', isNew: false, isRetry: false, start });
    }
    slots.release('proven');
    expect([started.length, slots.inUse, slots.waiting('proven')]).toEqual([20_000, 0, 0]);
  });

  test('misuse is loud: an id twice, a slot that nobody took, suspects without a slot', () => {
    const { slots, enqueue } = worker({ total: 1, suspectsMax: 1 });
    enqueue('a/1', 'proven');
    enqueue('a/2', 'proven');
    expect(() => enqueue('a/2', 'suspect')).toThrow('waits for a slot already');
    expect(() => slots.release('suspect')).toThrow('No slot of the suspect lane is taken.');
    expect(() => new Slots({ total: 4, suspectsMax: 0 })).toThrow(RangeError);
    expect(() => new Slots({ total: 4, suspectsMax: 5 })).toThrow(RangeError);
  });
});

describe('whatever arrives, ends, is removed or changes lanes', () => {
  const lane = fc.constantFrom<Lane>('proven', 'suspect');
  const endpoint = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constant('enqueue'), endpoint, lane, isNew: fc.boolean(), isRetry: fc.boolean() }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('end'), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove'), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('setLane'), endpoint, lane }) },
  );

  test('bounds hold, no slot stays free that may be used, and each delivery starts exactly once', () => {
    const sizes = fc
      .integer({ min: 1, max: 6 })
      .chain((total) => fc.record({ total: fc.constant(total), suspectsMax: fc.integer({ min: 1, max: total }) }));
    fc.assert(
      fc.property(sizes, fc.array(step, { maxLength: 120 }), (size, steps) => {
        const { slots, started, running, enqueue, end } = worker(size);
        const removed: string[] = [];
        const all: string[] = [];
        for (const each of steps as any[]) {
          const waiting = all.filter((id) => !started.includes(id) && !removed.includes(id));
          const provenWaited = slots.waiting('proven') > 0;
          const suspectsRan = [...running.values()].filter((inLane) => inLane === 'suspect').length;
          const before = started.length;
          if (each.do === 'enqueue') {
            all.push(`${each.endpoint}/${all.length}`);
            enqueue(all.at(-1)!, each.lane, { isNew: each.isNew, isRetry: each.isRetry });
          } else if (each.do === 'end' && running.size > 0) {
            end([...running.keys()][each.pick % running.size]!);
          } else if (each.do === 'remove' && waiting.length > 0) {
            removed.push(waiting[each.pick % waiting.length]!);
            expect(slots.remove(removed.at(-1)!)).toBe(true);
          } else if (each.do === 'setLane') {
            slots.setLane(each.endpoint, each.lane);
          }
          const suspects = [...running.values()].filter((inLane) => inLane === 'suspect').length;
          expect(slots.inUse).toBe(running.size);
          expect(slots.inUse).toBeLessThanOrEqual(size.total);
          expect(suspects).toBeLessThanOrEqual(size.suspectsMax);
          // Work-conserving.
          if (slots.inUse < size.total) {
            expect(slots.waiting('proven')).toBe(0);
            if (suspects < size.suspectsMax) expect(slots.waiting('suspect')).toBe(0);
          }
          // While a proven one waits, no suspect beyond the first starts.
          if (provenWaited && slots.waiting('proven') > 0 && each.do !== 'setLane') {
            expect(suspects).toBeLessThanOrEqual(Math.max(1, suspectsRan));
          }
          expect(new Set(started).size).toBe(started.length);
          expect(started.slice(before).filter((id) => removed.includes(id))).toEqual([]);
          expect(slots.waiting('proven') + slots.waiting('suspect')).toBe(all.length - removed.length - started.length);
        }
        while (running.size > 0) end([...running.keys()][0]!);
        expect([...started, ...removed].sort()).toEqual([...all].sort());
        expect([slots.inUse, slots.waiting('proven'), slots.waiting('suspect')]).toEqual([0, 0, 0]);
      }),
    );
  });

  test('an endpoint waits for at most one start of each other endpoint in its lane', () => {
    const queues = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(queues, fc.array(fc.nat(7), { maxLength: 100 }), lane, (sizes, arrivals, inLane) => {
        const { started, enqueue, end } = worker({ total: 1, suspectsMax: 1 });
        enqueue('x/0', inLane);
        for (const [index, size] of sizes.entries()) for (let n = 0; n < size; n++) enqueue(`e${index}/${n}`, inLane);
        for (const [index, arrival] of arrivals.entries()) {
          end(started.at(-1)!);
          enqueue(`e${arrival % sizes.length}/later${index}`, inLane);
        }
        // All wait from the beginning: before the first start of each, every other starts at most once.
        const order = started.slice(1).map((id) => id.split('/')[0]!);
        for (const index of sizes.keys()) {
          const others = order.slice(0, order.indexOf(`e${index}`)).filter((each) => each !== `e${index}`);
          expect(new Set(others).size).toBe(others.length);
        }
      }),
    );
  });
});
