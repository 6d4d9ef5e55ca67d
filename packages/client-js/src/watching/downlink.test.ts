import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Layer, TrackReference } from '../protocol.generated.js';
import type { RemoteTrack, TrackQuality } from '../remote/participant.js';
import type { Display, Limit } from '../subscriptions.js';
import { Downlink, type Video as Received } from './downlink.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

interface Video extends Received {
  display: Display | undefined;
  layer: Layer | undefined;
}

function video(participantId: string, { display, layer, ...more }: Partial<Video & RemoteTrack> = {}): Video {
  const given = { participantId, trackId: 'camera', source: 'camera' as const, muted: false };
  const mediaStreamTrack = { id: participantId } as MediaStreamTrack;
  return { track: { ...given, mediaStreamTrack, ...more }, isSpeaking: false, display, layer };
}

/** A receiving connection whose line has a queue of this length. */
function setUp(videos: Video[]) {
  let nowMs = 0;
  let queueMs = 0;
  let bps = 1_200_000;
  /** How long this machine takes for each sample. */
  let takesMs = 0;
  let lossPercent = 0;
  /** Whether each lost packet comes again, as a packet of RTX. */
  let isRepeated = false;
  let [bytes, packets, lost, lookedAt] = [0, 0, 0, 0];
  const getStats = async () => {
    nowMs += takesMs;
    bytes += ((nowMs - lookedAt) * bps) / 8_000;
    if (bps === 0) lost += nowMs - lookedAt;
    else packets += nowMs - lookedAt;
    // A full queue loses packets, a longer route does not.
    if (queueMs >= 300) lost += 0.05 * (nowMs - lookedAt);
    lost += (lossPercent / 100) * (nowMs - lookedAt);
    lookedAt = nowMs;
    const each = { type: 'inbound-rtp', kind: 'video', frameWidth: 1280, frameHeight: 720 };
    const repeated = isRepeated ? { rtxSsrc: 1, retransmittedPacketsReceived: lost } : {};
    const counters = { packetsReceived: packets, packetsLost: bps === 0 ? 0 : lost, ...repeated };
    return new Map<string, object>([
      ['audio', { id: 'audio', type: 'inbound-rtp', kind: 'audio', bytesReceived: nowMs * 5, ...counters }],
      ['pair', { type: 'candidate-pair', nominated: true, currentRoundTripTime: 0.3 }],
      ['report', { type: 'remote-outbound-rtp', timestamp: nowMs + queueMs, remoteTimestamp: nowMs - 5_000 }],
      ...videos.map(({ track: { mediaStreamTrack } }): [string, object] => {
        const id = mediaStreamTrack!.id;
        return [id, { ...each, id, trackIdentifier: id, bytesReceived: bytes / videos.length }];
      }),
    ]);
  };
  const receiver: Pick<RTCRtpReceiver, 'jitterBufferTarget'> = { jitterBufferTarget: null };
  const open = () =>
    ({ connectionState: 'connected', getStats, getReceivers: () => [receiver] }) as unknown as RTCPeerConnection;
  let connection = open();
  const limits = new Map<string, Limit | undefined>();
  const qualities = new Map<string, TrackQuality>();
  const of = ({ participantId }: TrackReference) => videos.find(({ track }) => track.participantId === participantId);
  const downlink = new Downlink({
    now: () => nowMs,
    connection: () => connection,
    videos: () => videos,
    subscriptions: {
      displayOf: (reference) => of(reference)?.display,
      layerOf: (reference) => of(reference)?.layer,
      limit: ({ participantId }, limit) => limits.set(participantId, limit),
    },
    onQuality: ({ participantId }, quality) => qualities.set(participantId, quality),
  });
  const change = (to: {
    queueMs?: number;
    bps?: number;
    takesMs?: number;
    lossPercent?: number;
    isRepeated?: boolean;
  }) => {
    ({ queueMs = queueMs, bps = bps, takesMs = takesMs, lossPercent = lossPercent, isRepeated = isRepeated } = to);
  };
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      nowMs += 50;
      await jest.advanceTimersByTimeAsync(50);
    }
  };
  return {
    downlink,
    limits,
    receiver,
    change,
    pass,
    /** The queue of the slow line is full until less is sent. */
    becomeSlow: async (to: number) => {
      change({ queueMs: 300, bps: to });
      await pass(700);
      change({ queueMs: 0 });
      await pass(2_000);
    },
    /** `full` unless something else was reported. */
    quality: (participantId: string) => qualities.get(participantId) ?? 'full',
    become: (connectionState: RTCPeerConnectionState) => {
      Object.assign(connection, { connectionState });
    },
    replace: () => {
      connection = open();
    },
  };
}

describe('the downlink', () => {
  test('limits what a line with a queue carries, screens last, and gives everything back', async () => {
    const { downlink, limits, quality, change, pass } = setUp([
      video('ada'),
      video('eve', { source: 'screen' }),
      video('muted', { muted: true }),
      video('hidden', { display: { isHidden: true, maxSpatial: 2, pixels: 0 } }),
    ]);
    await pass(5_000);
    expect([quality('ada'), quality('eve')]).toEqual(['full', 'full']);
    change({ queueMs: 300, bps: 700_000 });
    await pass(700);
    expect([limits.get('ada')?.isPaused, limits.get('eve')?.isPaused]).toEqual([true, true]);
    change({ queueMs: 0 });
    await pass(1_500);
    expect(quality('ada')).toBe('reduced');
    expect(limits.get('eve')?.layer.spatial ?? 3).toBeGreaterThanOrEqual(limits.get('ada')?.layer.spatial ?? 3);
    change({ bps: 1_200_000 });
    await pass(20_000);
    expect([quality('ada'), quality('eve')]).toEqual(['full', 'full']);
    expect([...limits.values()]).toEqual([undefined, undefined]);
    downlink.close();
  });

  test('lifts the limit of a video that has lost its media section', async () => {
    const videos = [video('ada'), video('eve')];
    const { downlink, limits, quality, becomeSlow, pass } = setUp(videos);
    await pass(3_000);
    await becomeSlow(60_000);
    expect(limits.get('eve')).toBeDefined();
    videos.pop();
    await pass(1_000);
    expect([limits.get('eve'), quality('eve')]).toEqual([undefined, 'full']);
    expect(limits.get('ada')).toBeDefined();
    downlink.close();
  });

  test('limits nothing because of a cut, nor because the path after it is longer', async () => {
    const { downlink, quality, change, become, pass } = setUp([video('ada')]);
    await pass(5_000);
    change({ bps: 0 });
    await pass(5_000);
    become('disconnected');
    await pass(7_000);
    become('connected');
    await pass(300);
    change({ bps: 1_200_000, queueMs: 290 });
    await pass(10_000);
    expect(quality('ada')).toBe('full');
    downlink.close();
  });

  test.each([
    [0, 'reduced'],
    [150, 'full'],
  ])('takes a delay of 150 ms for a queue, unless this machine is late: by %i ms', async (takesMs, expected) => {
    const { downlink, quality, change, pass } = setUp([video('ada')]);
    await pass(5_000);
    change({ queueMs: 150, takesMs });
    await pass(2_500);
    expect(quality('ada')).toBe(expected);
    downlink.close();
  });

  test('gives everything back as soon as a longer delay has turned out to be that of the route', async () => {
    const { downlink, limits, quality, change, pass } = setUp([video('ada')]);
    await pass(5_000);
    change({ queueMs: 200 });
    await pass(2_000);
    expect(quality('ada')).toBe('reduced');
    await pass(2_500);
    expect([quality('ada'), limits.get('ada')]).toEqual(['full', undefined]);
    downlink.close();
  });

  test('takes the limits of a slow line over to another connection', async () => {
    const { downlink, limits, quality, becomeSlow, replace, pass } = setUp([video('ada')]);
    await pass(3_000);
    await becomeSlow(300_000);
    const spatial = limits.get('ada')?.layer.spatial;
    expect(spatial).toBeDefined();
    replace();
    await pass(1_500);
    expect(limits.get('ada')).toMatchObject({ isPaused: false, layer: { spatial } });
    await pass(20_000);
    expect(quality('ada')).toBe('full');
    downlink.close();
  });

  test.each([false, true])(
    'waits a round trip for packets that are sent again, with RTX: %s, until ten seconds after the last loss',
    async (isRepeated) => {
      const { downlink, receiver, quality, change, pass } = setUp([video('ada')]);
      change({ isRepeated });
      await pass(5_000);
      expect(receiver.jitterBufferTarget).toBeNull();
      change({ lossPercent: 3 });
      await pass(3_000);
      expect([receiver.jitterBufferTarget, quality('ada')]).toEqual([400, 'full']);
      // Many repeated packets are lost as well.
      change({ lossPercent: 10 });
      await pass(2_000);
      expect([receiver.jitterBufferTarget, quality('ada')]).toEqual([600, 'full']);
      change({ lossPercent: 0 });
      await pass(9_000);
      expect(receiver.jitterBufferTarget).toBe(600);
      await pass(4_000);
      expect(receiver.jitterBufferTarget).toBeNull();
      downlink.close();
    },
  );

  test('does not take losses for congestion whose packets came again', async () => {
    const { downlink, quality, change, pass } = setUp([video('ada')]);
    await pass(5_000);
    change({ lossPercent: 30, isRepeated: true });
    await pass(5_000);
    expect(quality('ada')).toBe('full');
    change({ isRepeated: false });
    await pass(5_000);
    expect(quality('ada')).not.toBe('full');
    downlink.close();
  });

  test('never goes above the layer that the application chose', async () => {
    const { downlink, limits, becomeSlow, pass } = setUp([video('ada', { layer: { spatial: 0 } })]);
    await pass(3_000);
    await becomeSlow(60_000);
    expect(limits.get('ada')?.layer.spatial).toBe(0);
    downlink.close();
  });
});
