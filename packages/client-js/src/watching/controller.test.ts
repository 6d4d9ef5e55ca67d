import { describe, expect, test } from '@jest/globals';
import { HIGHEST, PAUSED } from './ladder.js';
import {
  CAMERA,
  modeOf,
  MOVING,
  simulate as simulateWith,
  type LineNow,
  type Simulated,
} from './simulated-line.testkit.js';

const FREE = { bps: 20_000_000 };
const levelsOf = ({ state }: Simulated) => [...state.levels.values()];
const between = (run: Simulated[], from: number, to: number) =>
  run.filter(({ atMs }) => atMs > 1000 * from && atMs <= 1000 * to);
const congestedShare = (run: Simulated[]) => run.filter(({ loss }) => loss > 0.01).length / run.length;
const shareInFull = (run: Simulated[]) => run.filter((one) => levelsOf(one)[0] === HIGHEST).length / run.length;
/** The last second in which something was limited. */
const limitedUntil = (run: Simulated[]) =>
  (run.findLast(
    ({ state }) => modeOf(state) !== 'free' || levelsOf({ state } as Simulated).some((one) => one < HIGHEST),
  )?.atMs ?? 0) / 1000;

describe.each<[string, { isBlind?: boolean }]>([
  ['', {}],
  [' in a browser that does not tell how long pictures take to arrive', { isBlind: true }],
])('the downlink controller%s', (_which, common) => {
  const simulate: typeof simulateWith = (cameras, seconds, lineAt, options) =>
    simulateWith(cameras, seconds, lineAt, { ...common, ...options });

  test.each([
    ['a good line', () => FREE],
    ['3 % loss', () => ({ ...FREE, loss: 0.03 })],
    ['10 % loss', () => ({ ...FREE, loss: 0.1 })],
    ['5 % loss with bursts of 30 %', (second: number) => ({ ...FREE, loss: second % 4 === 0 ? 0.3 : 0.05 })],
    ['200 ms delay', () => ({ ...FREE, delayMs: 200 })],
    ['a cut of 12 s', (second: number) => (second > 10 && second <= 22 ? { bps: 0 } : FREE)],
    ['a cut that ends within a sample', (second: number) => (second === 10.5 ? { ...FREE, loss: 0.7 } : FREE)],
  ])('limits nothing because of %s', (_what, lineAt) => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const run = simulate({ ada: CAMERA, bob: CAMERA }, 60, lineAt, { seed });
      expect([seed, limitedUntil(run)]).toEqual([seed, 0]);
    }
  });

  test('holds after a cut what it held before it', () => {
    const slow = { bps: 400_000 };
    const isCut = (second: number) => second > 40 && second <= 52;
    const run = simulate({ ada: CAMERA }, 60, (second) => {
      if (isCut(second)) return { bps: 0 };
      return second <= 10 ? FREE : slow;
    });
    const [before] = between(run, 39.5, 40).map(levelsOf);
    for (const levels of between(run, 52, 53).map(levelsOf)) expect(levels).toEqual(before);
  });

  test('lowers layers within 3 s on a line of 400 kbit/s, and rarely congests it afterwards', () => {
    const run = simulate({ ada: CAMERA }, 120, (second) => (second <= 10 ? FREE : { bps: 400_000 }));
    for (const { state } of between(run, 13, 120)) {
      expect(state.levels.get('ada')).toBeGreaterThan(PAUSED);
      expect(state.levels.get('ada')).toBeLessThan(HIGHEST);
    }
    expect(congestedShare(between(run, 14, 120))).toBeLessThan(0.1);
  });

  test('pauses the video on a line of 90 kbit/s, and rarely congests it afterwards', () => {
    const run = simulate({ ada: CAMERA }, 120, (second) => (second <= 10 ? FREE : { bps: 90_000 }));
    const paused = between(run, 14, 120).filter(({ state }) => state.levels.get('ada') === PAUSED);
    expect(paused.length / between(run, 14, 120).length).toBeGreaterThan(0.5);
    expect(congestedShare(between(run, 14, 120))).toBeLessThan(0.15);
  });

  describe('with seven microphones and seven still tiles, which cost less than the audio', () => {
    const TILE = [0, ...Array.from({ length: HIGHEST }, () => 30_000)];
    const tiles = Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`tile ${at}`, TILE]));
    const received = (one: Simulated) => levelsOf(one).filter((level) => level > PAUSED).length;
    const simulateTiles = (delayAt: (second: number) => number) =>
      between(
        simulate(tiles, 120, (second) => ({ ...FREE, delayMs: delayAt(second) }), { audioBps: 280_000 }),
        5,
        120,
      );

    test('never pauses all tiles while the delay varies by 150 ms, and gives all of them back', () => {
      // Values of 0 to 150 ms, the same in each run, of which up to seven in a row look like a queue.
      const jitterAt = (second: number) => (150 * ((7 * Math.floor(second)) % 101)) / 100;
      const run = simulateTiles((second) => (second > 10 && second <= 80 ? jitterAt(second) : 0));
      expect(Math.min(...run.map(received))).toBeGreaterThan(0);
      expect(Math.min(...run.map(received))).toBeLessThan(7);
      expect(limitedUntil(run)).toBeLessThan(95);
    });
  });

  test.each([
    ['400 kbit/s', 400_000],
    ['150 kbit/s', 150_000],
    ['90 kbit/s', 90_000],
  ])('receives everything again within 15 s after a line of %s is free', (_what, bps) => {
    for (let freeAt = 30; freeAt < 40; freeAt += 0.5) {
      const run = simulate({ ada: CAMERA }, 70, (second) => (second > 10 && second <= freeAt ? { bps } : FREE));
      expect(limitedUntil(run) - freeAt).toBeLessThanOrEqual(15);
    }
  });

  test.each([150, 200, 500])('receives everything again within 4 s after the route became %s ms longer', (delayMs) => {
    const run = simulate({ ada: CAMERA, bob: CAMERA }, 60, (second) => ({
      ...FREE,
      delayMs: second > 10 ? delayMs : 0,
    }));
    // The packets of a picture follow each other as fast as before.
    if (common.isBlind !== true) expect(limitedUntil(run)).toBe(0);
    expect(limitedUntil(run)).toBeLessThan(14);
  });

  test('on a longer route still lowers layers when the line becomes slow', () => {
    const run = simulate({ ada: CAMERA }, 60, (second) => ({
      delayMs: second > 10 ? 200 : 0,
      bps: second > 20 ? 400_000 : FREE.bps,
    }));
    expect(between(run, 15, 20).flatMap(levelsOf)).toEqual(Array.from({ length: 10 }, () => HIGHEST));
    for (const { state } of between(run, 23, 60)) expect(state.levels.get('ada')).toBeLessThan(HIGHEST);
    expect(congestedShare(between(run, 24, 60))).toBeLessThan(0.1);
  });

  describe('while packets are lost at random, whatever is sent', () => {
    const SEEDS = Array.from({ length: 30 }, (_, at) => at + 1);
    /** Of each run, the seconds of the last 30 in which everything was received. */
    const secondsInFull = (lineAt: (second: number) => LineNow) =>
      SEEDS.map((seed) => {
        const run = between(simulate({ ada: CAMERA }, 50, lineAt, { seed }), 20, 50);
        return run.filter((one) => levelsOf(one)[0] === HIGHEST).length / 2;
      });
    const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;

    test.each([
      ['from the beginning', () => 0.03],
      ['from then on', (second: number) => (second > 20 ? 0.03 : 0)],
    ])('gives everything back on a route that became 150 ms longer, with 3 %% loss %s', (_when, lossAt) => {
      const inFull = secondsInFull((second) => ({
        ...FREE,
        loss: lossAt(second),
        delayMs: second > 20 ? 150 : 0,
      }));
      expect(mean(inFull)).toBeGreaterThan(25);
      expect(Math.min(...inFull)).toBeGreaterThan(15);
    });

    test('gives everything back on such a route also with 10 % loss', () => {
      const inFull = secondsInFull((second) => ({ ...FREE, loss: 0.1, delayMs: second > 20 ? 150 : 0 }));
      expect(mean(inFull)).toBeGreaterThan(25);
    });

    test('receives everything again within 15 s after a slow line is free', () => {
      const late = SEEDS.filter((seed) => {
        const lineAt = (second: number) => ({
          ...(second > 10 && second <= 30 ? { bps: 400_000 } : FREE),
          loss: 0.1,
        });
        return limitedUntil(simulate({ ada: CAMERA }, 60, lineAt, { seed })) > 45;
      });
      expect(late).toEqual([]);
    });

    test('lowers layers on a line of 400 kbit/s all the same, and rarely congests it afterwards', () => {
      for (const seed of SEEDS) {
        const lineAt = (second: number) => ({ bps: second > 10 ? 400_000 : FREE.bps, loss: 0.03 });
        const run = between(simulate({ ada: CAMERA }, 60, lineAt, { seed }), 14, 60);
        expect(shareInFull(run)).toBeLessThan(0.2);
        expect(run.filter(({ queueMs }) => queueMs > 200).length / run.length).toBeLessThan(0.1);
      }
    });
  });

  test.each([1_000, 3_000, 8_000])('does not take a queue of %i ms for a longer route', (queueMsMax) => {
    for (const loss of [0, 0.03]) {
      const slow = { bps: 400_000, queueMsMax, loss };
      const run = simulate({ ada: CAMERA }, 90, (second) => (second > 10 ? slow : { ...FREE, loss }));
      expect(shareInFull(between(run, 20, 90))).toBeLessThan(0.2);
      expect(run.at(-1)!.state.signs.harmlessQueueMs).toBeLessThan(100);
      expect(Math.max(...between(run, 30, 90).map(({ queueMs }) => queueMs))).toBeLessThan(600);
    }
  });

  test('leaves a queue that others keep filled as it is, and takes no more than what gets through', () => {
    const shared = { bps: 2_000_000, othersBps: 1_950_000 };
    for (let seed = 1; seed <= 10; seed += 1) {
      const run = simulate({ ada: CAMERA }, 90, (second) => (second > 10 ? shared : FREE), { seed });
      expect(shareInFull(between(run, 20, 90))).toBeLessThan(0.2);
      expect(between(run, 20, 90).every((one) => levelsOf(one)[0]! > PAUSED)).toBe(true);
    }
  });

  test('uses 330 of 400 kbit/s, with 20 pictures a second of which half count in the middle layer', () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const lineAt = (second: number) => (second > 10 ? { bps: 400_000 } : FREE);
      const run = between(simulate({ ada: MOVING }, 70, lineAt, { seed, frameRate: 20 }), 13, 70);
      const bps = run.reduce((sum, one) => sum + one.bps, 0) / run.length;
      expect(bps).toBeGreaterThan(330_000);
      expect(run.filter((one) => levelsOf(one)[0]! >= 3).length / run.length).toBeGreaterThan(0.8);
      expect(congestedShare(run)).toBeLessThan(0.1);
    }
  });

  test('keeps the quality of the highest rank longest', () => {
    const cameras = { screen: CAMERA, speaker: CAMERA, other: CAMERA };
    const run = simulate(cameras, 60, (second) => (second <= 10 ? FREE : { bps: 1_000_000 }));
    const { state } = run.findLast((one) => modeOf(one.state) === 'held')!;
    const [screen, speaker, other] = ['screen', 'speaker', 'other'].map((key) => state.levels.get(key)!);
    expect(screen).toBeGreaterThan(other!);
    expect(speaker).toBeGreaterThanOrEqual(other!);
    expect(other).toBeGreaterThan(PAUSED);
  });

  test('gives up bits that do not reduce the loss only for a moment', () => {
    const run = simulate({ ada: CAMERA }, 90, () => ({ ...FREE, loss: 0.25 }));
    expect(limitedUntil(run)).toBeGreaterThan(0);
    expect(limitedUntil(run)).toBeLessThan(30);
  });

  test('tries a budget that failed again only after 4 to 11 s', () => {
    const run = simulate({ ada: CAMERA }, 120, (second) => (second <= 10 ? FREE : { bps: 400_000 }));
    const begins = run.filter(
      ({ state }, at) => modeOf(state) === 'probing' && modeOf(run[at - 1]!.state) !== 'probing',
    );
    const gapsMs = begins.slice(1).map(({ atMs }, at) => atMs - begins[at]!.atMs);
    expect(gapsMs.length).toBeGreaterThan(5);
    for (const gapMs of gapsMs) expect(gapMs).toBeGreaterThanOrEqual(4_000);
    expect(Math.max(...gapsMs)).toBeLessThanOrEqual(14_000);
  });

  test('behind a policer, which drops what is too much at once, lowers layers', () => {
    const run = simulate({ ada: CAMERA }, 60, () => ({ bps: 600_000, queueMsMax: 5 }));
    const inFull = between(run, 10, 60).filter((one) => levelsOf(one)[0] === HIGHEST);
    expect(inFull.length / between(run, 10, 60).length).toBeLessThan(0.2);
    expect(congestedShare(between(run, 10, 60))).toBeLessThan(0.2);
  });
});
