import { decide } from './controller.js';
import { HIGHEST } from './ladder.js';
import {
  downlinkSampleOf,
  lineBetween,
  NO_BASELINE,
  type Baseline,
  type DownlinkSample,
  type StreamCounters,
} from './line.js';
import { modeOf, NO_COUNTERS } from './simulated-line.testkit.js';
import { INITIAL, type DownlinkState } from './state.js';
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';

const STREAM = 'audio';
/** All streams have had packets until the first sample. */
const baseAt = (atMs: number, ...streams: string[]): Baseline => ({
  ...NO_BASELINE,
  arrivedAtMs: Object.fromEntries([STREAM, ...streams].map((id) => [id, atMs])),
});
const counters = (more: Partial<StreamCounters>): StreamCounters => ({ ...NO_COUNTERS, ...more });
const sample = (atMs: number, more: Partial<DownlinkSample> = {}): DownlinkSample => ({
  atMs,
  streams: { [STREAM]: counters({ packets: atMs / 10 }) },
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
    const audio = { bytes: 1_000, audioBytes: 500, concealed: 480, samples: 48_000 };
    const streams = { [STREAM]: counters({ packets: 100, lost: 25, lostAtFirst: 50, ...audio }) };
    expect(lineBetween(sample(0), sample(1_000, { streams }), baseAt(0)).line).toEqual({
      seconds: 1,
      bps: 8_000,
      audioBps: 4_000,
      packets: 125,
      loss: 0.2,
      lossAtFirst: 0.4,
      queueMs: 0,
      concealed: 0.01,
    });
  });

  test('has the rates of the present streams, whatever one that is gone has carried', () => {
    const [hers, his] = [counters({ packets: 100, bytes: 1_000 }), counters({ packets: 900, bytes: 90_000 })];
    const before = sample(0, { streams: { hers, his } });
    const now = sample(1_000, { streams: { hers: { ...hers, packets: 150, bytes: 2_500 } } });
    expect(lineBetween(before, now, NO_BASELINE).line?.bps).toBe(12_000);
  });

  test('is not known while nothing arrives', () => {
    expect(lineBetween(sample(1_000), { ...sample(1_000), atMs: 2_000 }, NO_BASELINE).line).toBeUndefined();
  });

  test('has no loss because of an interruption of all streams, or of the streams of one participant', () => {
    const [hers, his] = ['Ada', 'Bob'];
    const at = (atMs: number, counted: Record<string, [packets: number, lost: number]>, concealed = 0) =>
      sample(atMs, {
        streams: {
          ...Object.fromEntries(
            Object.entries(counted).map(([id, [packets, lost]]) => [id, counters({ packets, lost })]),
          ),
          played: counters({ concealed, samples: 48 * atMs }),
        },
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
        streams: {
          [STREAM]: counters({
            packets: 100 * second,
            buffered: 1_000 * second,
            bufferSeconds: [0, 50, 100, 450][second]!,
          }),
        },
      }),
    );
    expect(queueOf(samples)).toEqual([0, 0, 190]);
  });
});

test('the packets of pictures tell how fast the line is, once enough of them followed another', () => {
  const video = (packets: number, frames: number, assemblySeconds: number | undefined, lost = 0) => ({
    packets,
    lost,
    frames,
    longFrames: frames,
    bytes: 1_000 * packets,
    assemblySeconds,
    framesDecoded: frames,
    width: 0,
    height: 0,
  });
  const burstsOf = (...videos: DownlinkSample['videos'][]) => {
    let base = NO_BASELINE;
    const samples = videos.map((one, at) => sample(500 * at, { videos: one }));
    return samples.slice(1).map((now, at) => {
      const result = lineBetween(samples[at]!, now, base);
      ({ base } = result);
      return result.line?.burstBps;
    });
  };
  const start = video(0, 0, 0);
  expect(burstsOf({ v: start }, { v: start }, { v: video(20, 10, 0.2) })).toEqual([undefined, 400_000]);
  // A small picture has few packets, and one sample does not suffice.
  const small = [video(4, 2, 0.04), video(8, 4, 0.08)].map((v) => ({ v }));
  expect(burstsOf({ v: start }, { v: start }, ...small)).toEqual([undefined, undefined, 400_000]);
  // Most packets are those of pictures that never became complete.
  expect(burstsOf({ v: start }, { v: start }, { v: video(40, 4, 0.08, 9) })).toEqual([undefined, 400_000]);
  // The other sender's own line is slow.
  const both = { slow: start, fast: start };
  expect(burstsOf(both, both, { slow: video(20, 10, 0.8), fast: video(20, 10, 0) })).toEqual([undefined, Infinity]);
  expect(burstsOf({ v: video(0, 0, undefined) }, { v: start }, { v: video(20, 10, undefined) })).toEqual([
    undefined,
    undefined,
  ]);
});

test('a sample has the counters of the received streams, and takes the fastest of the latest reports', () => {
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
      packetsLost: 8,
      retransmittedPacketsReceived: 6,
      rtxSsrc: 1,
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
    streams: {
      a: { packets: 5, lost: 1, lostAtFirst: 1, bytes: 100, audioBytes: 100 },
      b: { packets: 0, lost: 2, lostAtFirst: 8, bytes: 200, audioBytes: 0 },
    },
    transitMs: 600,
    reportAtMs: 2_000,
    videos: { v: { bytes: 200, width: 640, height: 360 } },
  });
});

/** A sample of a trace: the packets of each stream, and sums of all other counters. */
interface Traced extends Omit<DownlinkSample, 'lateMs' | 'streams'>, Omit<StreamCounters, 'packets' | 'lost'> {
  streams: Record<string, Pick<StreamCounters, 'packets' | 'lost'>>;
}

function sampleOf({ atMs, transitMs, reportAtMs, videos, streams: traced, ...sums }: Traced): DownlinkSample {
  const streams = Object.entries(traced).map(([id, packets]) => [id, counters(packets)] as const);
  return {
    atMs,
    transitMs,
    reportAtMs,
    videos,
    lateMs: 0,
    streams: { ...Object.fromEntries(streams), sums: counters(sums) },
  };
}

/** Recorded in Chromium through the shaper: see docs/benchmarks.md. */
function recorded(name: string): { limitedAtMs: number; states: { atMs: number; state: DownlinkState }[] } {
  const file = new URL(`traces/${name}.json`, import.meta.url);
  const trace = JSON.parse(readFileSync(file, 'utf8')) as { limitedAtMs: number; samples: Traced[] };
  const { limitedAtMs } = trace;
  const samples = trace.samples.map(sampleOf);
  let state: DownlinkState = INITIAL;
  let base = NO_BASELINE;
  const states = samples.slice(1).map((now, at) => {
    const result = lineBetween(samples[at]!, now, base);
    ({ base } = result);
    const measured = [...Array<undefined>(HIGHEST), 620_000];
    const camera = { key: 'camera', highest: HIGHEST, rank: 0, frameRate: 15, measured };
    state = decide(state, result.line, [camera], now.atMs);
    return { atMs: now.atMs, state };
  });
  return { limitedAtMs, states };
}

test.each(['400-kbit-per-second', '150-kbit-per-second'])(
  'the recorded line of %s is limited within 2 s, and not before it became slow',
  (name) => {
    const { limitedAtMs, states } = recorded(name);
    const firstAtMs = states.find(({ state }) => modeOf(state) === 'held')?.atMs;
    expect(firstAtMs).toBeGreaterThan(limitedAtMs);
    expect(firstAtMs).toBeLessThan(limitedAtMs + 2_000);
    expect(states.at(-1)?.state.levels.get('camera')).toBeLessThan(HIGHEST);
  },
);

test('the recorded cut of a publisher limits nothing, although 200 packets were lost', () => {
  const { states } = recorded('cut-of-a-publisher');
  expect(states.length).toBeGreaterThan(20);
  expect(new Set(states.map(({ state }) => modeOf(state)))).toEqual(new Set(['free']));
});
