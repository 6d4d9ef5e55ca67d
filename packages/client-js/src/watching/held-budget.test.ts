import { describe, expect, test } from '@jest/globals';
import { decide } from './controller.js';
import { HIGHEST, PAUSED } from './ladder.js';
import type { Line } from './line.js';
import { INITIAL, type DownlinkState } from './state.js';

describe('the downlink controller, while a budget is held', () => {
  const LINE: Line = { seconds: 0.5, bps: 50_000, audioBps: 0, packets: 25, loss: 0, queueMs: 0, concealed: 0 };
  const held = (level: number, more: Partial<DownlinkState> = {}): DownlinkState => ({
    ...INITIAL,
    mode: 'held',
    budgetBps: 200_000,
    levels: new Map([['screen', level]]),
    settledAtMs: 1_000,
    nextAtMs: 2_000,
    ...more,
  });
  /** The states after samples every 500 ms. */
  const statesOf = (from: DownlinkState, lines: (Line | undefined)[], measured: (number | undefined)[] = []) => {
    const screen = { key: 'screen', highest: HIGHEST, rank: 0, frameRate: 15, measured };
    let state = from;
    return lines.map((line, at) => (state = decide(state, line, [screen], 500 * (at + 1))));
  };
  const modesOf = (states: DownlinkState[]) => states.map(({ mode }) => mode);
  const empty = (samples: number) => Array.from({ length: samples }, () => undefined);

  test('gives up a queue that was seen before everything was paused, if nothing arrives any more', () => {
    const states = statesOf(held(PAUSED), [{ ...LINE, queueMs: 100 }, ...empty(5)]);
    expect(modesOf(states)).toContain('probing');
  });

  test('probes with all video paused, although a queue that others cause stays', () => {
    const states = statesOf(
      held(PAUSED),
      Array.from({ length: 6 }, () => ({ ...LINE, queueMs: 100 })),
    );
    expect(modesOf(states)).toContain('probing');
  });

  test('probes between the few pictures of a screen that stands still', () => {
    const states = statesOf(held(2), [undefined, LINE, undefined, LINE]);
    expect(modesOf(states).at(-1)).toBe('probing');
  });

  test('does not take a queue of seconds for a longer route because of reports from before the reduction', () => {
    const delays = [0, 700, undefined, 1_700, undefined, 2_100, undefined, 1_500, undefined, 200];
    const states = statesOf(
      { ...INITIAL, levels: new Map([['screen', HIGHEST]]) },
      delays.map((queueMs) => ({ ...LINE, bps: 400_000, queueMs })),
    );
    expect(modesOf(states)).toEqual(['free', ...Array.from({ length: 9 }, () => 'held')]);
    expect(states.at(-1)).toMatchObject({ harmlessQueueMs: 0, suspectedQueue: undefined });
  });

  test('probes after 15 s without any packet: the others must not wait for a video whose sender is silent', () => {
    const states = statesOf(held(2), [LINE, ...empty(40)]);
    expect(modesOf(states).indexOf('probing')).toBeGreaterThan(29);
  });

  test('keeps the levels without a probe if the ceiling leaves no room for a step', () => {
    const ceiling = { ceilingBps: 200_000, ceilingUntilMs: 8_000, nextAtMs: 1_500 };
    // Half the frame rate was measured when the picture moved more.
    const measured = [0, 200_000, 80_000, undefined, 120_000];
    const [, , state] = statesOf(held(2, ceiling), [LINE, LINE, LINE], measured);
    expect(state).toMatchObject({ mode: 'held', levels: new Map([['screen', 2]]), nextAtMs: 8_000 });
  });

  test('probes neither during a cut nor with the first packets after it', () => {
    const states = statesOf(held(2), [LINE, LINE, ...empty(8), LINE]);
    expect(new Set(modesOf(states))).toEqual(new Set(['held']));
  });
});
