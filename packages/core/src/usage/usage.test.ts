import { describe, expect, test } from '@jest/globals';
import { dayOf, daysBetween, parseDay } from '../time.js';
import { noUsage, presentUsageDay } from './usage.js';

const day = (text: string) => new Date(`${text}T00:00:00.000Z`);

describe('days', () => {
  test.each([
    '2026-02-29',
    '2026-13-01',
    '2026-1-01',
    '2026-11-20T00:00:00Z',
    '',
    '0000-01-01',
    '1969-12-31',
    '10000-01-01',
  ])('%j is no day', (text) => expect(parseDay(text)).toBeNull());

  test('are midnights in UTC, also around a change to winter time', () => {
    expect(parseDay('2026-10-25')).toEqual(day('2026-10-25'));
    expect(dayOf(new Date('2026-10-25T23:59:59.999Z'))).toEqual(day('2026-10-25'));
    expect(daysBetween(day('2026-10-24'), day('2026-10-26'))).toEqual([
      day('2026-10-24'),
      day('2026-10-25'),
      day('2026-10-26'),
    ]);
    expect(daysBetween(day('2026-10-26'), day('2026-10-25'))).toEqual([]);
  });
});

test('a day of usage shows whole seconds, minutes with two digits, and no relay share without a measured session', () => {
  const usage = {
    ...noUsage(day('2026-11-20')),
    rooms: 2,
    participantMs: 100_999,
    peakParticipants: 3,
    deliveries: 4,
    ...{ recordedMs: 90_000, convertedMs: 181_000, recordedBytes: 5 },
  };
  expect(presentUsageDay(usage)).toEqual({
    day: '2026-11-20',
    rooms: 2,
    participantSeconds: 100,
    participantMinutes: 1.67,
    peakParticipants: 3,
    relayShare: null,
    deliveries: 4,
    recordedMinutes: 1.5,
    convertedMinutes: 3.02,
    recordedBytes: 5,
  });
  expect(presentUsageDay({ ...usage, measuredSessions: 3, relayedSessions: 1 }).relayShare).toBe(0.3333);
});
