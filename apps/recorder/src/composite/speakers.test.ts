import { describe, expect, test } from '@jest/globals';
import { speakersOf, without } from './speakers.js';

const talk = (participantId: string, fromMs: number, toMs: number) => ({ participantId, fromMs, toMs });
const history = (...talks: ReturnType<typeof talk>[]): string[] =>
  speakersOf(talks).map(({ participantId, fromMs }) => `${fromMs} ${participantId}`);

describe('the speaker', () => {
  test('stays until somebody else speaks while the speaker is silent', () => {
    expect(history(talk('a', 0, 10_000), talk('b', 8000, 15_000), talk('a', 30_000, 40_000))).toEqual([
      '0 a',
      '10000 b',
      '30000 a',
    ]);
  });

  test('does not change for a short remark', () => {
    expect(history(talk('a', 0, 10_000), talk('b', 12_000, 12_900), talk('a', 14_000, 20_000))).toEqual(['0 a']);
    expect(history(talk('a', 0, 10_000), talk('b', 9500, 10_500))).toEqual(['0 a']);
  });

  test('has the place for some seconds', () => {
    expect(history(talk('a', 0, 1000), talk('b', 1200, 9000), talk('c', 1300, 2500))).toEqual(['0 a', '3000 b']);
  });
});

test('the parts of an interval without others', () => {
  const parts = (...others: [number, number][]) =>
    without(
      { fromMs: 10, toMs: 20 },
      others.map(([fromMs, toMs]) => ({ fromMs, toMs })),
    ).map(({ fromMs, toMs }) => `${fromMs}-${toMs}`);
  expect(parts()).toEqual(['10-20']);
  expect(parts([0, 12], [14, 15], [19, 30])).toEqual(['12-14', '15-19']);
  expect(parts([0, 30])).toEqual([]);
  expect(parts([30, 40])).toEqual(['10-20']);
});
