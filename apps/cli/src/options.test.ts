import { describe, expect, test } from '@jest/globals';
import { parseDuration, parseName, parseSince, timeOf } from './options.js';

test('parses a duration in minutes, hours or days, and rejects anything else', () => {
  expect(['1m', '30m', '12h', '90d', '3650d'].map(parseDuration)).toEqual([60, 1800, 43_200, 7_776_000, 315_360_000]);
  for (const wrong of ['', '0d', '90', 'd', '1.5h', '-1d', '1 d', '1w', '1D', '3651d', '9999999d', '1d1h']) {
    expect(() => parseDuration(wrong)).toThrow('such as 30m, 12h or 90d');
  }
});

test('parses a time of the past as a duration or a date with its time zone, and rejects anything else', () => {
  const now = new Date('2026-11-20T12:00:00Z');
  const times = ['2h', '90m', '2026-11-20T10:00:00Z', '2026-11-20T11:30:00.5+01:00'].map((text) =>
    timeOf(parseSince(text), now).toISOString(),
  );
  const [tenOClock, half] = ['2026-11-20T10:00:00.000Z', '2026-11-20T10:30:00.000Z'];
  expect(times).toEqual([tenOClock, half, tenOClock, '2026-11-20T10:30:00.500Z']);
  for (const wrong of [
    '',
    '2',
    '1w',
    'yesterday',
    '2026-11-20',
    '2026-11-20T10:00:00',
    '2026-13-20T10:00:00Z',
    '0000-01-01T00:00:00Z',
  ]) {
    expect(() => parseSince(wrong)).toThrow('such as 30m, 2h or 7d');
  }
});

describe('a name', () => {
  test('is trimmed and measured in code points', () => {
    expect(parseName('\u00a0 My app\u3000')).toBe('My app');
    expect(parseName('😀'.repeat(120))).toHaveLength(240);
  });

  test('is rejected if it is empty, too long or cannot be stored', () => {
    expect(() => parseName(' \u2003 ')).toThrow('1 to 120 characters');
    expect(() => parseName('x'.repeat(121))).toThrow('1 to 120 characters');
    expect(() => parseName('a\ud800')).toThrow('lone surrogate');
  });
});
