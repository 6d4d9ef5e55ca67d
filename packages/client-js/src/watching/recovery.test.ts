import { expect, test } from '@jest/globals';
import { randomFrom } from '@callplane/testing';
import type { Competitor } from './allocate.js';
import { decide } from './controller.js';
import { INITIAL, resumed, type DownlinkState } from './state.js';
import { HIGHEST } from './ladder.js';
import type { Line } from './line.js';
import { CAMERA, modeOf, simulate, type LineNow } from './simulated-line.testkit.js';

/** Another number tries other histories. */
const FIRST_SEED = 0;
const FREE_BPS = 20_000_000;

/** The random parts of a history. */
function dice(seed: number) {
  const random = randomFrom(seed);
  const upTo = (most: number) => Math.floor((most + 1) * random());
  return { random, upTo, isNow: (chance: number) => random() < chance };
}

const isInFull = (state: DownlinkState) =>
  modeOf(state) === 'free' && [...state.levels.values()].every((level) => level === HIGHEST);

/** Any values, also those that no line could have. */
function anyLine({ random, upTo, isNow }: ReturnType<typeof dice>): Line | undefined {
  if (isNow(0.2)) return undefined;
  const bps = isNow(0.2) ? 0 : upTo(3_000_000);
  return {
    seconds: 0.5,
    bps,
    audioBps: Math.min(300_000, bps * random()),
    packets: upTo(300),
    loss: isNow(0.6) ? 0 : random(),
    lossAtFirst: 0,
    queueMs: isNow(0.4) ? undefined : isNow(0.4) ? 0 : upTo(isNow(0.2) ? 5_000 : 400),
    concealed: isNow(0.7) ? 0 : random(),
  };
}

function anyCompetitors({ random, upTo, isNow }: ReturnType<typeof dice>): Competitor[] {
  return Array.from({ length: 1 + upTo(4) }, (_, at) => ({
    key: `camera ${at}`,
    highest: HIGHEST,
    frameRate: upTo(30),
    rank: upTo(3),
    measured: CAMERA.map((bps, level) => (level > 0 && isNow(0.5) ? bps * (0.2 + 2 * random()) : undefined)),
  }));
}

/** Seconds of a clean line until everything is received in full; Infinity if that takes more than two minutes. */
function secondsToRecover(seed: number): number {
  const all = dice(seed);
  let competitors = anyCompetitors(all);
  let state = INITIAL;
  let nowMs = all.upTo(10_000);
  for (let sample = all.upTo(150); sample > 0; sample -= 1) {
    nowMs += all.isNow(0.02) ? all.upTo(60_000) : 200 + all.upTo(500);
    if (all.isNow(0.05)) competitors = anyCompetitors(all);
    if (all.isNow(0.05)) state = resumed(state, nowMs);
    state = decide(state, anyLine(all), competitors, nowMs);
  }
  const counted = { seconds: 0.5, bps: 1_000_000, audioBps: 40_000, packets: 100 };
  const clean: Line = { ...counted, loss: 0, lossAtFirst: 0, queueMs: 0, concealed: 0 };
  const isSilent = all.isNow(0.2);
  for (let at = 0; at < 240; at += 1) {
    nowMs += 500;
    const isAnythingSent = !isSilent || [...state.levels.values()].some((level) => level > 0);
    // Sender reports come once a second.
    const line = isAnythingSent ? { ...clean, queueMs: at % 2 === 0 ? 0 : undefined } : undefined;
    state = decide(state, line, competitors, nowMs);
    if (isInFull(state)) return at / 2;
  }
  return Infinity;
}

test('after any history, a clean line brings every video back', () => {
  const late = Array.from({ length: 200 }, (_, at) => at + FIRST_SEED).filter((seed) => secondsToRecover(seed) > 60);
  expect(late).toEqual([]);
});

/** A line that is slow, lossy, long or cut, in parts, and then clean, perhaps on a longer route. */
function anyLineAndClean(seed: number): { lineAt: (second: number) => LineNow; cleanFrom: number } {
  const { random, upTo, isNow } = dice(seed);
  const parts = Array.from({ length: 1 + upTo(8) }, () => ({
    bps: isNow(0.2) ? 0 : isNow(0.3) ? FREE_BPS : 30_000 + upTo(1_500_000),
    loss: isNow(0.5) ? 0 : random() * (isNow(0.3) ? 1 : 0.2),
    delayMs: isNow(0.5) ? 0 : upTo(800),
    queueMsMax: isNow(0.3) ? upTo(3_000) : 300,
  }));
  const each = 1 + upTo(12);
  const clean = { bps: FREE_BPS, delayMs: isNow(0.5) ? 0 : upTo(800) };
  return { lineAt: (second) => parts[Math.ceil(second / each) - 1] ?? clean, cleanFrom: each * parts.length };
}

test('after any line, a clean one brings every video back', () => {
  const late = Array.from({ length: 60 }, (_, at) => at + FIRST_SEED).filter((seed) => {
    const { lineAt, cleanFrom } = anyLineAndClean(seed);
    const cameras = { ada: CAMERA, bob: CAMERA.map((bps) => 0.7 * bps), eve: CAMERA.map((bps) => 0.4 * bps) };
    const run = simulate(cameras, cleanFrom + 40, lineAt, { seed });
    return run.some(({ atMs, state }) => atMs > 1000 * (cleanFrom + 30) && !isInFull(state));
  });
  expect(late).toEqual([]);
});
