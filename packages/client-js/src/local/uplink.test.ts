import { describe, expect, test } from '@jest/globals';
import { afterMeasurement, everyLayer, limitsOf, type Affordable } from './uplink.js';

const MAX = [120_000, 500_000];
const layers = (...targets: number[]) =>
  targets.map((targetBitrate, at) => ({ maxBitrate: MAX[at] ?? 0, targetBitrate }));
/** Repeats one measurement. @returns `top` after each */
function run(state: Affordable, times: number, targets: number[], available: number, sentTop = 1) {
  const tops: number[] = [];
  let now = state;
  for (let at = 0; at < times; at += 1) {
    now = afterMeasurement(now, layers(...targets), sentTop, available);
    tops.push(now.top);
  }
  return { now, tops };
}

describe('the layers that an uplink affords', () => {
  test('are all of them at the beginning, until the best one starves for longer than the browser needs to settle', () => {
    expect(run(everyLayer(2), 7, [120_000, 40_000], 200_000).tops).toEqual([1, 1, 1, 1, 0, 0, 0]);
    expect(run(everyLayer(2), 20, [120_000, 70_000], 200_000).tops).not.toContain(0);
  });

  test('are left out together if several starve, and the pictures below go on', () => {
    const three = [120_000, 400_000, 1_200_000];
    const measured = (...targets: number[]) =>
      targets.map((targetBitrate, at) => ({ maxBitrate: three[at] ?? 0, targetBitrate }));
    const after = (...targets: number[]) => {
      let now = everyLayer(3);
      for (let at = 0; at < 6; at += 1) now = afterMeasurement(now, measured(...targets), 2, 150_000);
      return now.top;
    };
    expect([after(120_000, 30_000, 0), after(120_000, 200_000, 0), after(120_000, 400_000, 700_000)]).toEqual([
      0, 1, 2,
    ]);
  });

  test('are one more once there was enough for it three times in a row, after a while', () => {
    const { now } = run(everyLayer(2), 5, [120_000, 0], 150_000);
    const swinging = [0, 1, 2, 3].reduce(
      (state) => run(run(state, 2, [150_000, 0], 400_000).now, 5, [150_000, 0], 250_000).now,
      now,
    );
    expect(swinging.top).toBe(0);
    expect(run(swinging, 4, [150_000, 0], 400_000).tops).toEqual([0, 0, 1, 1]);
    // The estimate does not exceed what is sent by much, so a layer at its limit is a sign, too.
    expect(run(swinging, 4, [215_000, 0], 236_000).tops).toEqual([0, 0, 1, 1]);
  });

  test('wait for longer after each attempt that fails, up to 40 measurements', () => {
    let state = everyLayer(2);
    const waits: number[] = [];
    for (let attempt = 0; attempt < 6; attempt += 1) {
      while (state.top === 1) state = run(state, 1, [120_000, 0], 400_000).now;
      let waited = 0;
      for (; state.top === 0; waited += 1) state = run(state, 1, [245_000, 0], 400_000).now;
      waits.push(waited);
    }
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect([waits[0]! < 15, waits.at(-1)]).toEqual([true, 40]);
  });

  test('are all of them within 15 measurements after the end of a shortage in which an attempt failed', () => {
    const three = [120_000, 400_000, 1_200_000];
    const step = (state: Affordable, targets: number[], available: number) =>
      afterMeasurement(
        state,
        three.map((maxBitrate, at) => ({ maxBitrate, targetBitrate: targets[at] ?? 0 })),
        2,
        available,
      );
    let state = everyLayer(3);
    for (let second = 1; second <= 10; second += 1) state = step(state, [120_000, 400_000, 1_200_000], 2_000_000);
    const tops: number[] = [];
    // 300 kbit/s for 20 s: the estimate suffices for an attempt, and the layer then starves.
    for (let second = 1; second <= 20; second += 1)
      tops.push((state = step(state, state.top === 0 ? [220_000] : [120_000, 40_000], 300_000)).top);
    expect([Math.min(...tops), tops.slice(tops.indexOf(0)).includes(1), state.top]).toEqual([0, true, 0]);
    expect(state.hold).toBe(10);
    // Each layer is full 2 s after it was added.
    let seconds = 0;
    for (; state.top < 2 && seconds < 60; seconds += 1)
      state = step(state, state.age < 2 ? [120_000, 150_000] : [220_000, 700_000], 400_000);
    expect(seconds).toBeLessThanOrEqual(15);
  });

  test('do not change while receivers do not want the best one', () => {
    expect(run(everyLayer(2), 30, [120_000, 0], 200_000, 0).tops).not.toContain(0);
  });

  test('have the limits with which they were published, and the best one more while a better one is left out', () => {
    const every = everyLayer(2);
    expect(limitsOf(every, layers(0, 0))).toEqual([120_000, 500_000]);
    expect(limitsOf({ ...every, top: 0 }, layers(0, 0))).toEqual([245_000, 500_000]);
  });

  test('are the only one of a track with one layer', () => {
    expect(run(everyLayer(1), 30, [0], 0).tops).toEqual(Array.from({ length: 30 }, () => 0));
  });
});
