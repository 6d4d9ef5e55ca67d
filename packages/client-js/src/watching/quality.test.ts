import { levelOf, nextTrend, qualityBetween, sampleOf, worse, type QualityTrend } from './quality.js';
import { describe, expect, test } from '@jest/globals';

describe('the level of a connection', () => {
  test.each([
    [{}, 'good'],
    [{ roundTripMs: 40, jitterMs: 5 }, 'good'],
    [{ roundTripMs: 200, jitterMs: 20, lossPercent: 2 }, 'good'],
    [{ lossPercent: 8 }, 'fair'],
    [{ roundTripMs: 600, jitterMs: 30 }, 'fair'],
    [{ lossPercent: 15 }, 'poor'],
    [{ roundTripMs: 1200 }, 'poor'],
    [{ jitterMs: 300 }, 'poor'],
  ] as const)('%j is %s', (quality, level) => {
    expect(levelOf(quality)).toBe(level);
  });

  test('the worse of two levels counts', () => {
    expect([worse('good', 'fair'), worse('lost', 'poor'), worse('fair', 'fair')]).toEqual(['fair', 'lost', 'fair']);
  });

  test('falls at once, and rises only after three better measurements in a row', () => {
    let trend: QualityTrend | undefined;
    const levels = (['good', 'poor', 'good', 'good', 'poor', 'good', 'good', 'good', 'good'] as const).map(
      (measured) => (trend = nextTrend(trend, measured)).level,
    );
    expect(levels).toEqual(['good', 'poor', 'poor', 'poor', 'poor', 'poor', 'poor', 'good', 'good']);
  });
});

describe('statistics of a connection', () => {
  const report = (entries: object[]) =>
    new Map(entries.map((entry, index) => [String(index), { id: String(index), ...entry }])) as never;
  const sample = (sent: number, sentLost: number, received: number, receivedLost: number) =>
    sampleOf(
      report([
        { type: 'outbound-rtp', packetsSent: sent },
        { type: 'remote-inbound-rtp', packetsLost: sentLost, jitter: 0.004 },
        { type: 'inbound-rtp', packetsReceived: received, packetsLost: receivedLost, jitter: 0.012 },
        { id: 'local', type: 'local-candidate', candidateType: 'relay' },
        {
          type: 'candidate-pair',
          nominated: true,
          state: 'succeeded',
          currentRoundTripTime: 0.08,
          localCandidateId: 'local',
        },
      ]),
    );

  test('give loss, round trip, jitter and the relay', () => {
    const now = sample(200, 5, 190, 10);
    expect(now.isRelayed).toBe(true);
    expect(qualityBetween(sample(100, 0, 100, 0), now)).toEqual({ lossPercent: 10, roundTripMs: 80, jitterMs: 12 });
  });

  test('count no loss for a packet whose repetition came over RTX', () => {
    const received = (more: object) =>
      sampleOf(report([{ type: 'inbound-rtp', packetsReceived: 100, packetsLost: 10, ...more }]));
    const none = sampleOf(report([]));
    const repeated = { retransmittedPacketsReceived: 9 };
    expect(qualityBetween(none, received({ ...repeated, rtxSsrc: 1 })).lossPercent).toBeCloseTo(100 / 101);
    // Without RTX, the repetition itself has lowered `packetsLost`.
    expect(qualityBetween(none, received(repeated)).lossPercent).toBeCloseTo(1000 / 110);
  });

  test('without packets give no loss, also when counters fall', () => {
    expect(qualityBetween(sample(100, 5, 100, 5), sample(100, 0, 100, 0)).lossPercent).toBe(0);
    expect(qualityBetween(sampleOf(report([])), sampleOf(report([])))).toEqual({ lossPercent: 0 });
  });
});
