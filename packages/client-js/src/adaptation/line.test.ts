import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { decide } from './downlink-controller.js';
import { downlinkSampleOf, type DownlinkSample } from './downlink-sample.js';
import { type DownlinkState, INITIAL } from './downlink-state.js';
import { HIGHEST } from './ladder.js';
import { lineBetween, NO_BASELINE, type Baseline } from './line.js';

const STREAM = 'audio';
/** All streams have had packets until the first sample. */
const baseAt = (atMs: number, ...streams: string[]): Baseline => ({
  ...NO_BASELINE,
  arrivedAtMs: Object.fromEntries([STREAM, ...streams].map((id) => [id, atMs])),
});
const sample = (atMs: number, more: Partial<DownlinkSample> = {}): DownlinkSample => ({
  atMs,
  bytes: atMs,
  streams: { [STREAM]: { packets: atMs / 10, lost: 0 } },
  audioBytes: 0,
  concealed: 0,
  samples: 0,
  bufferSeconds: 0,
  buffered: 0,
  transitMs: 1_000,
  reportAtMs: atMs,
  lateMs: 0,
  videos: {},
  ...more,
});
const queueOf = (samples: DownlinkSample[]) => {
  let base = NO_BASELINE;
  return samples.slice(1).map((now, at) => {
    const result = lineBetween(samples[at]!, now, base);
    ({ base } = result);
    return result.line?.queueMs;
  });
};

describe('the line between two samples', () => {
  test('has the rates and the loss of that time', () => {
    const streams = { [STREAM]: { packets: 100, lost: 25 } };
    const now = sample(1_000, { streams, audioBytes: 500, concealed: 480, samples: 48_000 });
    expect(lineBetween(sample(0), now, baseAt(0)).line).toEqual({
      seconds: 1,
      bps: 8_000,
      audioBps: 4_000,
      loss: 0.2,
      queueMs: 0,
      concealed: 0.01,
    });
  });

  test('is not known while nothing arrives', () => {
    expect(lineBetween(sample(1_000), { ...sample(1_000), atMs: 2_000 }, NO_BASELINE).line).toBeUndefined();
  });

  test('has no loss because of an interruption of all streams, or of the streams of one participant', () => {
    const [hers, his] = ['Ada', 'Bob'];
    const at = (atMs: number, counters: Record<string, [packets: number, lost: number]>, concealed = 0) =>
      sample(atMs, {
        concealed,
        samples: 48 * atMs,
        streams: Object.fromEntries(Object.entries(counters).map(([id, [packets, lost]]) => [id, { packets, lost }])),
      });
    const samples = [
      at(0, { [hers]: [50, 0], [his]: [50, 0] }),
      at(500, { [hers]: [60, 0], [his]: [75, 0] }),
      // Ada's own line is cut.
      at(1_000, { [hers]: [60, 0], [his]: [100, 0] }, 24_000),
      at(1_500, { [hers]: [80, 40], [his]: [120, 5] }, 36_000),
      at(2_000, { [hers]: [100, 45], [his]: [145, 5] }, 37_000),
    ];
    let base = baseAt(0, hers, his);
    const lines = samples.slice(1).map((now, index) => {
      const result = lineBetween(samples[index]!, now, base);
      ({ base } = result);
      return result.line;
    });
    expect(lines.map((line) => line?.loss)).toEqual([0, 0, 5 / 45, 0.1]);
    expect(lines.map((line) => (line?.concealed ?? 0) > 0.01)).toEqual([false, true, false, true]);
  });

  test('has a queue if a report takes longer than the fastest one, until the baseline has risen', () => {
    const transits = [1_000, 1_000, 1_300, 1_000, ...Array.from({ length: 40 }, () => 1_200)];
    const queues = queueOf(transits.map((transitMs, second) => sample(1_000 * second, { transitMs })));
    expect(queues.slice(0, 3)).toEqual([0, 290, 0]);
    expect(queues[3]).toBe(190);
    expect(queues.at(-1)).toBe(0);
  });

  test('has a queue less the time that this machine was late, of which at most 150 ms count', () => {
    const samples = [1_000, 1_000, 1_130, 1_000, 1_130, 1_500].map((transitMs, second) =>
      sample(1_000 * second, { transitMs, lateMs: [0, 0, 0, 60, 0, 900][second]! }),
    );
    // The sample before may have been late while the report arrived.
    expect(queueOf(samples)).toEqual([0, 120, 0, 60, 330]);
  });

  test('tells nothing new of the queue without a new report', () => {
    expect(queueOf([sample(0), sample(500, { reportAtMs: 0 })])).toEqual([undefined]);
    // The stream of the latest report is gone.
    expect(queueOf([sample(0), sample(500, { reportAtMs: -600 })])).toEqual([undefined]);
  });

  test('has a queue if the jitter buffer grows, in browsers without reports', () => {
    const samples = [0, 1, 2, 3].map((second) =>
      sample(1_000 * second, {
        transitMs: undefined,
        reportAtMs: undefined,
        buffered: 1_000 * second,
        bufferSeconds: [0, 50, 100, 450][second]!,
      }),
    );
    expect(queueOf(samples)).toEqual([0, 0, 190]);
  });
});

test('a sample sums the received streams, and takes the fastest of the latest reports', () => {
  const entries = [
    {
      id: 'a',
      type: 'inbound-rtp',
      kind: 'audio',
      bytesReceived: 90,
      headerBytesReceived: 10,
      packetsReceived: 5,
      packetsLost: 1,
    },
    {
      id: 'b',
      type: 'inbound-rtp',
      kind: 'video',
      trackIdentifier: 'v',
      bytesReceived: 200,
      frameWidth: 640,
      frameHeight: 360,
    },
    { type: 'remote-outbound-rtp', timestamp: 1_900, remoteTimestamp: 1_000 },
    { type: 'remote-outbound-rtp', timestamp: 1_600, remoteTimestamp: 1_000 },
    { type: 'remote-outbound-rtp', timestamp: 2_000, remoteTimestamp: 1_300 },
    // That was another second.
    { type: 'remote-outbound-rtp', timestamp: 1_400, remoteTimestamp: 1_000 },
    { type: 'candidate-pair', timestamp: 3_000 },
  ];
  const report = new Map(entries.map((entry, at) => [String(at), entry])) as unknown as RTCStatsReport;
  expect(downlinkSampleOf(report, 7)).toMatchObject({
    atMs: 7,
    bytes: 300,
    streams: { a: { packets: 5, lost: 1 }, b: { packets: 0, lost: 0 } },
    audioBytes: 100,
    transitMs: 600,
    reportAtMs: 2_000,
    videos: { v: { bytes: 200, width: 640, height: 360 } },
  });
});

/** Recorded in Chromium through the shaper: see docs/media-quality.md. */
function recorded(name: string): { limitedAtMs: number; states: { atMs: number; state: DownlinkState }[] } {
  const file = new URL(`traces/${name}.json`, import.meta.url);
  const { limitedAtMs, samples: all } = JSON.parse(readFileSync(file, 'utf8')) as {
    limitedAtMs: number;
    samples: Omit<DownlinkSample, 'lateMs'>[];
  };
  const samples = all.map((one): DownlinkSample => ({ lateMs: 0, ...one }));
  let state: DownlinkState = INITIAL;
  let base = NO_BASELINE;
  const states = samples.slice(1).map((now, at) => {
    const result = lineBetween(samples[at]!, now, base);
    ({ base } = result);
    const measured = [...Array<undefined>(HIGHEST), 620_000];
    const camera = { key: 'camera', highest: HIGHEST, rank: 0, isSmoothAtHalf: false, measured };
    state = decide(state, result.line, [camera], now.atMs);
    return { atMs: now.atMs, state };
  });
  return { limitedAtMs, states };
}

test.each(['400-kbit-per-second', '150-kbit-per-second'])(
  'the recorded line of %s is limited within 2 s, and not before it became slow',
  (name) => {
    const { limitedAtMs, states } = recorded(name);
    const firstAtMs = states.find(({ state }) => state.mode === 'held')?.atMs;
    expect(firstAtMs).toBeGreaterThan(limitedAtMs);
    expect(firstAtMs).toBeLessThan(limitedAtMs + 2_000);
    expect(states.at(-1)?.state.levels.get('camera')).toBeLessThan(HIGHEST);
  },
);

test('the recorded cut of a publisher limits nothing, although 200 packets were lost', () => {
  const { states } = recorded('cut-of-a-publisher');
  expect(states.length).toBeGreaterThan(20);
  expect(new Set(states.map(({ state }) => state.mode))).toEqual(new Set(['free']));
});
