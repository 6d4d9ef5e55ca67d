import { expect, test } from '@jest/globals';
import { randomFrom } from '@callplane/testing';
import { brakeAt } from './brake.js';
import { CAMERA, MOVING, simulate, type LineNow } from './simulated-line.testkit.js';

/** A line whose properties change every few seconds. */
function anyLine(seed: number): (second: number) => LineNow {
  const random = randomFrom(seed);
  const parts = Array.from({ length: 20 }, () => ({
    bps: random() < 0.1 ? 0 : random() < 0.3 ? 20_000_000 : 60_000 + 2_000_000 * random(),
    loss: random() < 0.6 ? 0 : 0.3 * random(),
    delayMs: random() < 0.7 ? 0 : 400 * random(),
    queueMsMax: random() < 0.2 ? 5 : 300 + 1_500 * random(),
  }));
  return (second) => parts[Math.floor(second / 9) % parts.length]!;
}

const names = Array.from({ length: 8 }, (_, at) => at + 1).map((seed) =>
  simulate({ ada: CAMERA, bob: MOVING }, 180, anyLine(seed), { seed }).map(({ state, atMs }) => ({
    budget: state.budget.name,
    probe: state.probe.name,
    brake: brakeAt(state, atMs),
  })),
);

test.each([
  ['budget', ['free → held', 'held → free']],
  // A probe that has passed may be followed by the next one within one sample.
  [
    'probe',
    [
      'entering → trying',
      'entering → waiting',
      'trying → entering',
      'trying → waiting',
      'waiting → entering',
      'waiting → trying',
    ],
  ],
  [
    'brake',
    [
      'half → none',
      'half → slow',
      'half → stop',
      'none → half',
      'none → slow',
      'none → stop',
      'slow → none',
      'slow → stop',
      'stop → half',
    ],
  ],
] as const)('the %s makes all of its transitions, and no other one', (machine, transitions) => {
  const seen = names.flatMap((run) =>
    run.slice(1).flatMap((now, at) => {
      const before = run[at]![machine];
      return before === now[machine] ? [] : [`${before} → ${now[machine]}`];
    }),
  );
  expect([...new Set(seen)].sort()).toEqual(transitions);
});
