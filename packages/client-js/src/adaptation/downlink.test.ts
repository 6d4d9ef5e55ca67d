import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Downlink, type ReceivedVideo } from './downlink.js';
import type { Limit } from './receive-plan.js';
import type { TrackQuality } from './track-quality.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const video = (participantId: string, more: Partial<ReceivedVideo> = {}): ReceivedVideo => ({
  track: { participantId, trackId: 'camera' },
  trackIdentifier: participantId,
  source: 'camera',
  isMuted: false,
  isSpeaking: false,
  display: undefined,
  layer: undefined,
  ...more,
});

/** A receiving connection whose line has a queue of this length. */
function setUp(videos: ReceivedVideo[]) {
  let nowMs = 0;
  let queueMs = 0;
  let bps = 1_200_000;
  let [bytes, packets, lookedAt, reads] = [0, 0, 0, 0];
  const getStats = async () => {
    reads += 1;
    bytes += ((nowMs - lookedAt) * bps) / 8_000;
    packets += nowMs - lookedAt;
    lookedAt = nowMs;
    const each = { type: 'inbound-rtp', kind: 'video', frameWidth: 1280, frameHeight: 720 };
    return new Map<string, object>([
      ['audio', { type: 'inbound-rtp', kind: 'audio', bytesReceived: nowMs * 5, packetsReceived: packets }],
      ['report', { type: 'remote-outbound-rtp', timestamp: nowMs + queueMs, remoteTimestamp: nowMs - 5_000 }],
      ...videos.map(
        ({ trackIdentifier }) =>
          [trackIdentifier, { ...each, trackIdentifier, bytesReceived: bytes / videos.length }] as [string, object],
      ),
    ]);
  };
  const connection = { connectionState: 'connected', getStats } as unknown as RTCPeerConnection;
  const limits = new Map<string, Limit | undefined>();
  const qualities = new Map<string, TrackQuality>();
  const downlink = new Downlink({
    now: () => nowMs,
    connection: () => connection,
    videos: () => videos,
    limit: ({ participantId }, limit, quality) => {
      limits.set(participantId, limit);
      qualities.set(participantId, quality);
    },
  });
  return {
    downlink,
    limits,
    qualities,
    reads: () => reads,
    change: (to: { queueMs?: number; bps?: number }) => {
      ({ queueMs = queueMs, bps = bps } = to);
    },
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 50) {
        nowMs += 50;
        await jest.advanceTimersByTimeAsync(50);
      }
    },
  };
}

describe('the downlink', () => {
  test('limits what a line with a queue carries, screens last, and gives everything back', async () => {
    const { downlink, limits, qualities, change, pass } = setUp([
      video('ada'),
      video('eve', { source: 'screen' }),
      video('muted', { isMuted: true }),
      video('hidden', { display: { isHidden: true, maxSpatial: undefined, pixels: 0 } }),
    ]);
    await pass(5_000);
    expect([...qualities.values()]).toEqual(['full', 'full']);
    change({ queueMs: 300, bps: 700_000 });
    await pass(700);
    expect([limits.get('ada')?.isPaused, limits.get('eve')?.isPaused]).toEqual([true, true]);
    change({ queueMs: 0 });
    await pass(1_500);
    expect(qualities.get('ada')).toBe('reduced');
    expect(limits.get('eve')?.layer?.spatial ?? 3).toBeGreaterThanOrEqual(limits.get('ada')?.layer?.spatial ?? 3);
    change({ bps: 1_200_000 });
    await pass(20_000);
    expect([...qualities.values()]).toEqual(['full', 'full']);
    expect([...limits.values()]).toEqual([undefined, undefined]);
    downlink.close();
  });

  test('lifts the limit of a video that has lost its media section', async () => {
    const videos = [video('ada'), video('eve')];
    const { downlink, limits, qualities, change, pass } = setUp(videos);
    await pass(3_000);
    change({ queueMs: 300, bps: 60_000 });
    await pass(4_000);
    expect(limits.get('eve')).toBeDefined();
    videos.pop();
    await pass(1_000);
    expect([limits.get('eve'), qualities.get('eve')]).toEqual([undefined, 'full']);
    expect(limits.get('ada')).toBeDefined();
    downlink.close();
  });

  test('never goes above the layer that the application chose', async () => {
    const { downlink, limits, change, pass } = setUp([video('ada', { layer: { spatial: 0 } })]);
    await pass(3_000);
    change({ queueMs: 300, bps: 60_000 });
    await pass(4_000);
    expect(limits.get('ada')?.layer?.spatial).toBe(0);
    downlink.close();
  });

  test('samples at once after a notice of the media server, but not for each of many, nor after its end', async () => {
    const { downlink, reads, pass } = setUp([]);
    await pass(2_000);
    const before = reads();
    await pass(300);
    for (let notice = 0; notice < 10; notice += 1) downlink.slowLink();
    await pass(50);
    expect(reads()).toBe(before + 1);
    downlink.close();
    await pass(5_000);
    expect(reads()).toBe(before + 1);
  });
});
