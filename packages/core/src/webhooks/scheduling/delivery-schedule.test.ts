import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DeliverySchedule, type ClaimRequest, type Place } from './delivery-schedule.js';
import type { SlotMs } from './slot-time.js';

/** A worker whose endpoints always have more due deliveries than a request, unless a test limits them. */
function worker({ slots = 4, ahead = 4, endpointsMax = 100 } = {}) {
  const schedule = new DeliverySchedule({ slots, ahead, endpointsMax });
  const sending: Place[] = [];
  const state = { nowMs: 0 };
  const due = (endpointId: string, slotMs: SlotMs, environmentId = 'env') => {
    const learned = schedule.learn({ endpointId, environmentId, slotMs }, state.nowMs);
    schedule.wake(endpointId, state.nowMs, ['first']);
    return learned;
  };
  /** Claims and starts as many deliveries as possible; returns the endpoints in the order of their starts. */
  const run = (available: (request: ClaimRequest) => number = ({ count }) => count) => {
    const started: string[] = [];
    const startAll = () => {
      for (let place = schedule.start(state.nowMs); place !== undefined; place = schedule.start(state.nowMs)) {
        sending.push(place);
        started.push(place.endpointId);
      }
    };
    startAll();
    for (let requests = schedule.take(state.nowMs); requests.length > 0; requests = schedule.take(state.nowMs)) {
      for (const request of requests) schedule.took(request, Math.min(request.count, available(request)), state.nowMs);
      startAll();
    }
    return started;
  };
  const end = (endpointId: string, durationMs = 5, hung = false) => {
    const at = sending.findIndex((place) => place.endpointId === endpointId);
    const [place] = sending.splice(at, 1);
    return schedule.end(place as Place, { durationMs, hung }, state.nowMs);
  };
  /** Adds an endpoint that this worker knows to be quick, with due deliveries. */
  const quick = (endpointId: string, environmentId = 'env') => {
    due(endpointId, 5, environmentId);
    run();
    while (sending.some((place) => place.endpointId === endpointId)) end(endpointId);
  };
  const countOf = (endpointId: string) => sending.filter((place) => place.endpointId === endpointId).length;
  return { schedule, state, sending, due, run, end, quick, countOf };
}

describe('the slots of a worker', () => {
  test('all go to an endpoint that responds quickly, with four places ahead', () => {
    const { schedule, quick, run, countOf } = worker();
    quick('a');
    run();
    expect([countOf('a'), schedule.sending]).toEqual([4, 4]);
    expect(schedule.take(0)).toEqual([]);
    // Eight places, and the endpoint that waits for more.
    expect(schedule.load).toBe(9);
    expect(schedule.surplus).toMatchObject({ endpointId: 'a' });
  });

  test('leave one to other environments that were active within a minute', () => {
    const { state, quick, run, countOf, end } = worker();
    quick('b', 'other');
    state.nowMs = 1;
    quick('a');
    run();
    expect(countOf('a')).toBeLessThanOrEqual(3);
    expect(countOf('b')).toBeGreaterThanOrEqual(1);
    for (const id of ['a', 'b']) while (countOf(id) > 0) end(id);
  });

  test('are limited to two for hanging or untried endpoints, one each, whatever else waits', () => {
    const { due, run, countOf, sending } = worker();
    for (const id of ['n1', 'n2', 'n3']) due(id, null);
    due('h', 10_000);
    run();
    expect(sending).toHaveLength(2);
    expect(Math.max(...['n1', 'n2', 'n3', 'h'].map(countOf))).toBe(1);
  });

  test('are limited to three for slow and hanging endpoints together', () => {
    const { due, run, sending, countOf } = worker();
    due('slow', 2000);
    due('hangs', 10_000, 'other');
    due('hangs2', 10_000, 'third');
    run();
    expect(sending).toHaveLength(3);
    expect(countOf('slow')).toBeGreaterThanOrEqual(1);
  });

  test('go once to an endpoint without a recent response to this worker, before it gets more', () => {
    const { due, run, countOf, end } = worker();
    due('a', 20);
    run();
    expect(countOf('a')).toBe(1);
    end('a');
    run();
    expect(countOf('a')).toBe(4);
  });

  test('move the endpoint of a long attempt out of the fast lane and give back its claimed deliveries', () => {
    const { schedule, quick, run, sending, countOf } = worker();
    quick('a');
    run();
    const back = schedule.overdue(sending[0] as Place, 1000);
    expect(back.map(({ endpointId, state }) => [endpointId, state])).toEqual(back.map(() => ['a', 'claimed']));
    expect(back.length).toBeGreaterThan(0);
    for (const place of back) schedule.giveBack(place);
    expect(schedule.overdue(sending[1] as Place, 1000)).toEqual([]);
    run();
    expect(countOf('a')).toBe(4);
  });
});

describe('turns of a worker', () => {
  test('alternate by environment before endpoint', () => {
    const { due, run, end } = worker({ slots: 1, ahead: 0 });
    for (let n = 0; n < 20; n += 1) due(`a${n}`, 2000, 'a');
    due('b', 2000, 'b');
    const order: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const [started] = run();
      order.push(started as string);
      end(started as string, 2000);
    }
    expect(order.filter((id) => id === 'b').length).toBeGreaterThanOrEqual(2);
    expect(new Set(order.filter((id) => id !== 'b')).size).toBe(order.filter((id) => id !== 'b').length);
  });

  test('charge an environment by slot time, so that quick deliveries go ahead of long ones', () => {
    const { due, run, end } = worker({ slots: 2, ahead: 0 });
    due('long', 900, 'a');
    due('short', 9, 'b');
    const counts: Record<string, number> = { long: 0, short: 0 };
    for (let n = 0; n < 50; n += 1) {
      for (const id of run()) counts[id]! += 1;
      end('short', 9);
    }
    expect(counts['short']).toBeGreaterThan(40);
    expect(counts['long']).toBeGreaterThan(0);
  });

  test('alternate between quick and hanging endpoints when the worker has one slot', () => {
    const { quick, due, run, end } = worker({ slots: 1, ahead: 0 });
    quick('a');
    for (let n = 0; n < 9; n += 1) due(`h${n}`, 10_000, 'other');
    const order: string[] = [];
    for (let n = 0; n < 8; n += 1) {
      const [started] = run();
      order.push(started as string);
      end(started as string, started === 'a' ? 5 : 10_000, started !== 'a');
    }
    expect(order.filter((id) => id === 'a')).toHaveLength(4);
  });

  test('give retries every fourth place of an endpoint with both kinds due', () => {
    const { schedule, due, quick, run, end, state } = worker({ slots: 4, ahead: 4 });
    quick('a');
    schedule.wake('a', state.nowMs);
    const kinds = { first: 0, retry: 0 };
    for (let n = 0; n < 40; n += 1) {
      run((request) => ((kinds[request.kind] += request.count), request.count));
      end('a');
    }
    expect(kinds.retry / (kinds.first + kinds.retry)).toBeCloseTo(0.25, 1);
    due('a', 5);
  });

  test('go first to the latest untried endpoint, whatever hangs', () => {
    const { due, run, end } = worker({ slots: 2, ahead: 0 });
    for (let n = 0; n < 30; n += 1) due(`h${n}`, 10_000, `hostile${n % 10}`);
    const [hanging] = run();
    due('new', null, 'mine');
    expect(run()).toEqual([]);
    end(hanging as string, 10_000, true);
    expect(run()).toEqual(['new']);
  });
});

describe('the set of endpoints', () => {
  test('drops an endpoint when a claim finds less than it requested, unless it was woken meanwhile', () => {
    const { schedule, due, state } = worker();
    due('a', null);
    const [request] = schedule.take(0);
    schedule.wake('a', state.nowMs, ['first']);
    schedule.took(request as ClaimRequest, 0, 0);
    expect(schedule.isReady('a')).toBe(true);
    const [again] = schedule.take(0);
    schedule.took(again as ClaimRequest, 0, 0);
    expect(schedule.isReady('a')).toBe(false);
    expect(schedule.take(0)).toEqual([]);
  });

  test('keeps an endpoint whose claim failed', () => {
    const { schedule, due } = worker();
    due('a', null);
    const [request] = schedule.take(0);
    schedule.failed(request as ClaimRequest);
    expect(schedule.take(0)).toEqual([request]);
  });

  test('wakes an endpoint when the earliest of its retries is due', () => {
    const { schedule, due, run, end } = worker();
    due('a', null);
    run(() => 1);
    end('a');
    schedule.later('a', 7000);
    schedule.later('a', 5000);
    expect(schedule.nextLaterMs).toBe(5000);
    schedule.wakeLaters(4999);
    expect(schedule.nextLaterMs).toBe(5000);
    schedule.wakeLaters(5000);
    expect(schedule.nextLaterMs).toBeNull();
    expect(schedule.take(5000).some(({ endpointId, kind }) => endpointId === 'a' && kind === 'retry')).toBe(true);
  });

  test('is bounded, and drops endpoints without work first', () => {
    const { schedule, due, run, end } = worker({ endpointsMax: 3 });
    for (const id of ['a', 'b']) expect(due(id, null)).toBe(true);
    run(({ endpointId }) => (endpointId === 'a' ? 1 : 0));
    end('a');
    run(() => 0);
    for (const id of ['c', 'd', 'e']) expect(due(id, 10_000)).toBe(true);
    expect(due('f', 10_000)).toBe(false);
    expect(schedule.readyIds.sort()).toEqual(['c', 'd', 'e']);
  });

  test('forgets an endpoint that only waits for a later retry when a new endpoint needs its room', () => {
    const { schedule, due, run, end } = worker({ endpointsMax: 1 });
    expect(due('a', null)).toBe(true);
    run(({ endpointId }) => (endpointId === 'a' ? 1 : 0));
    end('a');
    run(() => 0);
    schedule.later('a', 21_600_000);
    expect(due('b', null)).toBe(true);
    expect(schedule.nextLaterMs).toBeNull();
  });
});

test('a schedule keeps its bounds and frees every place, in any sequence of steps', () => {
  const endpoint = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const step = fc.oneof(
    fc.record({ do: fc.constant('wake'), endpoint, slotMs: fc.constantFrom(null, 5, 400, 2000, 10_000) }),
    fc.record({ do: fc.constant('run'), available: fc.integer({ min: 0, max: 8 }) }),
    fc.record({ do: fc.constant('end'), pick: fc.nat(), durationMs: fc.constantFrom(1, 300, 2000, 10_000) }),
    fc.record({ do: fc.constant('overdue'), pick: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 150 }), (slots, steps) => {
      const { schedule, state, sending, due, run } = worker({ slots });
      for (const each of steps as any[]) {
        state.nowMs += 500;
        if (each.do === 'wake') due(each.endpoint, each.slotMs, `env-${each.endpoint < 'd' ? 1 : 2}`);
        if (each.do === 'run') run(() => each.available);
        if (each.do === 'end' && sending.length > 0) {
          const [place] = sending.splice(each.pick % sending.length, 1);
          schedule.end(place!, { durationMs: each.durationMs, hung: each.durationMs === 10_000 }, state.nowMs);
        }
        if (each.do === 'overdue' && sending.length > 0) {
          for (const place of schedule.overdue(sending[each.pick % sending.length]!, state.nowMs))
            schedule.giveBack(place);
        }
        expect(schedule.sending).toBe(sending.length);
        expect(sending.length).toBeLessThanOrEqual(slots);
      }
      // Once all attempts have ended quickly and nothing more is due, no place is occupied.
      for (let round = 0; round < 50 && (sending.length > 0 || schedule.readyIds.length > 0); round += 1) {
        for (const place of sending.splice(0)) schedule.end(place, { durationMs: 1, hung: false }, state.nowMs);
        run(() => 0);
      }
      for (const place of sending.splice(0)) schedule.end(place, { durationMs: 1, hung: false }, state.nowMs);
      expect([schedule.sending, schedule.readyIds]).toEqual([0, []]);
    }),
  );
});

describe('a paused endpoint', () => {
  const PAUSE = { untilMs: 1000, endsWithAttempt: false };

  test('gets no place until its pause is over, although it is woken, and is ready all the time', () => {
    const { schedule, state, quick, due, run, countOf } = worker();
    quick('a');
    schedule.pause('a', PAUSE, state.nowMs, state.nowMs);
    due('a', 5);
    expect([run(), schedule.isReady('a'), schedule.nextLaterMs]).toEqual([[], true, 1000]);
    state.nowMs = 999;
    schedule.wakeLaters(state.nowMs);
    schedule.resume('a', state.nowMs);
    expect([run(), schedule.readyIds]).toEqual([[], ['a']]);
    state.nowMs = 1000;
    schedule.wakeLaters(state.nowMs);
    run();
    expect([countOf('a'), schedule.nextLaterMs]).toEqual([4, null]);
  });

  test('resumes with the end of an attempt if its pause allows that', () => {
    const { schedule, state, quick, due, run, countOf } = worker();
    quick('a');
    due('a', 5);
    schedule.pause('a', { ...PAUSE, endsWithAttempt: true }, state.nowMs, state.nowMs);
    expect(run()).toEqual([]);
    schedule.resume('a', state.nowMs);
    run();
    expect([countOf('a'), schedule.nextLaterMs]).toEqual([4, null]);
  });

  test('is not paused if an attempt has ended since the claim that found no place for another one', () => {
    const { schedule, state, quick, due, run, countOf } = worker();
    quick('a');
    due('a', 5);
    const full = { ...PAUSE, endsWithAttempt: true };
    schedule.resume('a', 5);
    schedule.pause('a', full, 6, 6);
    expect(run()).toEqual([]);
    state.nowMs = 7;
    schedule.resume('a', state.nowMs);
    // The claim was sent before the attempt ended, and its answer arrives after that.
    schedule.pause('a', full, 6, 8);
    run();
    expect([countOf('a'), schedule.nextLaterMs]).toEqual([4, null]);
    // The rate of the endpoint has nothing to do with the end of an attempt.
    schedule.pause('a', PAUSE, 6, 8);
    expect(schedule.nextLaterMs).toBe(1000);
  });

  test('stays ready after a claim that took fewer deliveries than it could', () => {
    const { schedule, quick } = worker();
    quick('a');
    for (const request of schedule.take(0)) schedule.took(request, 1, 0, true);
    schedule.pause('a', PAUSE, 0, 0);
    expect(schedule.readyIds).toEqual(['a']);
    expect(schedule.take(0)).toEqual([]);
  });
});

describe('an endpoint with a maximum rate', () => {
  test('is claimed only for a free slot, and gets its turns beside an endpoint that is claimed ahead', () => {
    const schedule = new DeliverySchedule({ slots: 4, ahead: 4 });
    for (const endpointId of ['paced', 'b']) {
      schedule.learn({ endpointId, environmentId: 'env', slotMs: 5 }, 0);
      schedule.wake(endpointId, 0, ['first']);
    }
    schedule.pace('paced', true);
    const places: Place[] = [];
    const startAll = (): void => {
      while (schedule.start(0) !== undefined);
    };
    /** Claims and starts all it can, and returns the endpoints of deliveries that wait for a slot. */
    const fill = (): string[] => {
      startAll();
      for (const request of schedule.take(0)) places.push(...schedule.took(request, request.count, 0));
      startAll();
      return places.filter(({ state }) => state === 'claimed').map(({ endpointId }) => endpointId);
    };
    const endOne = (): string => {
      const [place] = places.splice(
        places.findIndex(({ state }) => state === 'sending'),
        1,
      );
      schedule.end(place!, { durationMs: 5, hung: false }, 0);
      return place!.endpointId;
    };
    const ended: string[] = [];
    while (ended.length < 60) {
      expect(fill()).not.toContain('paced');
      ended.push(endOne());
    }
    expect(ended.filter((id) => id === 'paced').length).toBeGreaterThan(20);
    schedule.pause('paced', { untilMs: 9, endsWithAttempt: false }, 0, 0);
    while (places.some(({ endpointId }) => endpointId === 'paced')) endOne();
    fill();
    expect(fill()).toEqual(['b', 'b', 'b', 'b']);
  });

  test('begins its attempts before those of deliveries that were claimed earlier', () => {
    const schedule = new DeliverySchedule({ slots: 4, ahead: 0 });
    for (const endpointId of ['a', 'b']) {
      schedule.learn({ endpointId, environmentId: 'env', slotMs: 5 }, 0);
      schedule.wake(endpointId, 0, ['first']);
    }
    const requests = schedule.take(0);
    const [earlier, later] = requests.map(({ endpointId }) => endpointId);
    schedule.pace(later!, true);
    for (const request of requests) schedule.took(request, request.count, 0);
    expect([schedule.start(0)?.endpointId, schedule.start(0)?.endpointId]).toEqual([later, earlier]);
  });

  test('gets a slot of its own as a slow endpoint, too', () => {
    const { schedule, due, quick, run, end, countOf } = worker();
    quick('b');
    run();
    due('paced', 2000);
    schedule.pace('paced', true);
    for (let turn = 0; turn < 12 && countOf('paced') === 0; turn += 1) {
      run();
      if (countOf('b') > 0) end('b');
    }
    expect(countOf('paced')).toBe(1);
  });
});
