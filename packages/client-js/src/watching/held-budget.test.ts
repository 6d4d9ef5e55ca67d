import { describe, expect, test } from '@jest/globals';
import { decide } from './controller.js';
import { HIGHEST, PAUSED } from './ladder.js';
import type { Line } from './line.js';
import { waiting } from './probe.js';
import { modeOf } from './simulated-line.testkit.js';
import { INITIAL, type DownlinkState } from './state.js';

describe('the downlink controller, while a budget is held', () => {
  const LINE: Line = {
    seconds: 0.5,
    bps: 50_000,
    audioBps: 0,
    packets: 25,
    loss: 0,
    lossAtFirst: 0,
    queueMs: 0,
    concealed: 0,
  };
  const held = (level: number, more: Partial<DownlinkState> = {}): DownlinkState => ({
    ...INITIAL,
    budget: { ...INITIAL.budget, name: 'held', bps: 200_000 },
    levels: new Map([['screen', level]]),
    settledAtMs: 1_000,
    probe: waiting(2_000),
    ...more,
  });
  /** The states after samples every 500 ms. */
  const statesOf = (from: DownlinkState, lines: (Line | undefined)[], measured: (number | undefined)[] = []) => {
    const screen = { key: 'screen', highest: HIGHEST, rank: 0, frameRate: 15, measured };
    let state = from;
    return lines.map((line, at) => (state = decide(state, line, [screen], 500 * (at + 1))));
  };
  const modesOf = (states: DownlinkState[]) => states.map(modeOf);
  const empty = (samples: number) => Array.from({ length: samples }, () => undefined);

  test('probes with all video paused, although a queue that others cause stays', () => {
    const states = statesOf(
      held(PAUSED),
      Array.from({ length: 6 }, () => ({ ...LINE, queueMs: 100 })),
    );
    expect(modesOf(states)).toContain('probing');
  });

  test('does not reduce again because of a report that was sent before the last reduction', () => {
    const states = statesOf(held(2, { settledAtMs: 2_000, probe: waiting(9_000) }), [
      { ...LINE, queueMs: 280 },
      { ...LINE, queueMs: 280 },
      ...Array.from({ length: 4 }, () => ({ ...LINE, queueMs: undefined })),
    ]);
    expect(states.map(({ levels }) => levels.get('screen'))).toEqual(states.map(() => 2));
    const late = [...Array.from({ length: 4 }, () => LINE), { ...LINE, queueMs: 280 }];
    expect(
      statesOf(held(2, { probe: waiting(9_000) }), late)
        .at(-1)
        ?.levels.get('screen'),
    ).toBe(1);
  });

  test('probes between the few pictures of a screen that stands still', () => {
    const states = statesOf(held(2), [undefined, LINE, undefined, LINE]);
    expect(modesOf(states).at(-1)).toBe('probing');
  });

  test('probes after 15 s without any packet: the others must not wait for a video whose sender is silent', () => {
    const states = statesOf(held(2), [LINE, ...empty(40)]);
    expect(modesOf(states).indexOf('probing')).toBeGreaterThan(29);
  });
});

test('the downlink controller limits nothing because of invented audio on a lossy line without a queue', () => {
  const line: Line = {
    seconds: 0.5,
    bps: 1e6,
    audioBps: 45_000,
    packets: 80,
    loss: 0.1,
    lossAtFirst: 0.1,
    queueMs: 0,
    concealed: 0.1,
  };
  const camera = { key: 'camera', highest: HIGHEST, rank: 0, frameRate: 20, measured: [] };
  let state: DownlinkState = INITIAL;
  for (let atMs = 500; atMs <= 5_000; atMs += 500) state = decide(state, line, [camera], atMs);
  expect([modeOf(state), state.levels.get('camera')]).toEqual(['free', HIGHEST]);
});
