import { describe, expect, test } from '@jest/globals';
import { afterMeasurement, everyLayer, limitsOf, type Affordable, type MeasuredLayer } from './uplink.js';

const MAX = [120_000, 300_000, 1_200_000];
const SUM = 1_620_000;

/** A browser that gives the layers what an uplink carries, from the lowest one on. */
function uplinkOf(wanted: number[]) {
  let state = everyLayer(MAX.length);
  let limits = [...MAX];
  let estimate = 2_500_000;
  const layers = (): MeasuredLayer[] => {
    const active = new Set(wanted.map((layer) => Math.min(layer, state.top)));
    let left = estimate;
    return MAX.map((maxBitrate, at) => {
      const targetBitrate = active.has(at) ? Math.min(left, limits[at] ?? 0) : 0;
      left -= targetBitrate;
      return { maxBitrate, targetBitrate, isActive: active.has(at) };
    });
  };
  return {
    sent: () => layers().flatMap(({ isActive }, at) => (isActive ? [at] : [])),
    state: () => state,
    limits: () => limits,
    targets: () => layers().map(({ targetBitrate }) => targetBitrate),
    /** @returns the highest layer that may be sent, after each second */
    pass(seconds: number, carriedBps: number): number[] {
      return Array.from({ length: seconds }, () => {
        // It finds more only where it is allowed to send more than before.
        const isLifted = limits.reduce((sum, one) => sum + one, 0) > estimate;
        estimate = estimate > carriedBps ? carriedBps : Math.min(carriedBps, estimate * (isLifted ? 4 : 1.08));
        state = afterMeasurement(state, layers(), Math.max(...wanted), estimate);
        limits = limitsOf(state, layers());
        return state.top;
      });
    },
  };
}

describe('the layers that an uplink affords', () => {
  test('are all of them while there is enough', () => {
    const uplink = uplinkOf([0, 1, 2]);
    expect(new Set(uplink.pass(30, 2_500_000))).toEqual(new Set([2]));
    expect(uplink.limits()).toEqual(MAX);
  });

  test('are fewer once the best one starves, but not before the browser has had time to settle', () => {
    expect(uplinkOf([0, 1, 2]).pass(6, 500_000)).toEqual([2, 2, 2, 2, 1, 1]);
    const uplink = uplinkOf([0, 1, 2]);
    uplink.pass(10, 2_500_000);
    expect(uplink.pass(3, 500_000)).toEqual([2, 1, 1]);
  });

  test('are left out together if several starve', () => {
    const uplink = uplinkOf([0, 1, 2]);
    uplink.pass(10, 2_500_000);
    // The browser stops the best one.
    expect(uplink.pass(3, 200_000)).toEqual([0, 0, 0]);
    expect(uplink.sent()).toEqual([0]);
  });

  test.each([
    ['of three', [0, 1, 2]],
    ['of two', [0, 2]],
  ])('are all of them again within 8 s after a shortage %s', (_what, wanted) => {
    for (let shortFor = 5; shortFor < 30; shortFor += 1) {
      const uplink = uplinkOf(wanted);
      uplink.pass(10, 2_500_000);
      uplink.pass(shortFor, 200_000);
      expect(uplink.state().top).toBe(0);
      expect(uplink.pass(8, 2_500_000).at(-1)).toBe(2);
      uplink.pass(1, 2_500_000);
      expect(uplink.limits()).toEqual(MAX);
    }
  });

  test('are the only one that is received, whatever it gets: the browser sends a smaller picture', () => {
    const uplink = uplinkOf([2]);
    uplink.pass(10, 2_500_000);
    expect(new Set(uplink.pass(20, 200_000))).toEqual(new Set([2]));
    expect(uplink.sent()).toEqual([2]);
    uplink.pass(4, 2_500_000);
    expect(uplink.targets()).toEqual([0, 0, 1_200_000]);
    uplink.pass(1, 2_500_000);
    expect(uplink.limits()).toEqual(MAX);
  });

  test('wait for longer after each attempt that fails, up to 40 measurements', () => {
    const layers = (...targets: number[]) =>
      targets.map((targetBitrate, at) => ({ maxBitrate: MAX[at] ?? 0, targetBitrate, isActive: true }));
    let state: Affordable = { ...everyLayer(3), top: 0 };
    const waits: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      let waited = 0;
      // The estimate promises enough, and the layer then starves.
      for (; state.top === 0; waited += 1) state = afterMeasurement(state, layers(240_000, 0, 0), 1, 400_000);
      while (state.top > 0) state = afterMeasurement(state, layers(120_000, 40_000, 0), 1, 400_000);
      waits.push(waited);
    }
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect([waits[0], waits[1], waits.at(-1)]).toEqual([2, 5, 40]);
  });

  test('do not change while receivers do not want the best one', () => {
    const uplink = uplinkOf([0]);
    expect(new Set(uplink.pass(30, 200_000))).toEqual(new Set([2]));
    expect(uplink.limits()).toEqual(MAX);
  });

  test('have a limit that is lifted every other second while the best one is short', () => {
    const uplink = uplinkOf([0, 2]);
    uplink.pass(10, 2_500_000);
    uplink.pass(10, 200_000);
    const limits = Array.from({ length: 4 }, () => {
      uplink.pass(1, 200_000);
      return uplink.limits()[0];
    });
    expect([...new Set(limits)].sort((a, b) => a! - b!)).toEqual([240_000, SUM]);
  });
});
