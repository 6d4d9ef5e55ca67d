import { describe, expect, test } from '@jest/globals';
import { ArrivalClock } from './arrival-clock.js';

/** A clock that has seen these packets, each with its arrival and its RTP time in milliseconds. */
function clockOf(packets: Iterable<readonly [number, number]>): ArrivalClock {
  const clock = new ArrivalClock();
  for (const [arrivalMs, rtpMs] of packets) clock.add(arrivalMs, rtpMs);
  return clock;
}

/** Packets every 20 ms, delayed by up to 40 ms. */
function* jittery(fromMs: number, toMs: number, arrivalOf = (rtpMs: number) => rtpMs) {
  for (let rtpMs = fromMs, n = 0; rtpMs < toMs; rtpMs += 20, n += 1) {
    yield [arrivalOf(rtpMs) + ((n * 7) % 5) * 10, rtpMs] as const;
  }
}

describe('the clock of arrivals', () => {
  test('takes away jitter', () => {
    const clock = clockOf(jittery(0, 30_000));
    for (const ms of [0, 20, 9980, 15_000, 29_980]) expect(clock.at(ms)).toBeCloseTo(ms, 0);
  });

  test('follows a sender whose clock is 0.1 per cent slow', () => {
    const clock = clockOf(jittery(0, 60_000, (rtpMs) => rtpMs * 1.001));
    for (const ms of [10_000, 30_000, 59_000]) expect(Math.abs(clock.at(ms) - ms * 1.001)).toBeLessThan(12);
  });

  test('keeps a pause in which RTP time stood still', () => {
    const clock = clockOf([...jittery(0, 5000), ...jittery(5000, 10_000, (rtpMs) => rtpMs + 10_000)]);
    expect(clock.at(4900)).toBeCloseTo(4900, 0);
    expect(clock.at(5020)).toBeCloseTo(15_020, 0);
    expect(clock.at(9000)).toBeCloseTo(19_000, 0);
  });

  test('is not moved by a packet that was sent again', () => {
    const packets: (readonly [number, number])[] = [...jittery(0, 5000)];
    const clock = clockOf([...packets, [5300, 4000], ...jittery(5000, 9000)]);
    for (const ms of [4000, 6000]) expect(clock.at(ms)).toBeCloseTo(ms, 0);
  });
});
