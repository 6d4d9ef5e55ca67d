import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LocalTrack } from './local-track.js';
import { SentLayers } from './sent-layers.js';
import { UplinkLayers } from './uplink-layers.js';

const MAX = [500_000, 120_000];

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** A camera in two layers, and what its sender reports. */
function setUp() {
  const encodings = ['h', 'l'].map((rid, at) => ({ rid, active: true, maxBitrate: MAX[at] ?? 0 }));
  const reported = { best: 500_000, bytesReceived: 0, perSecond: 1_000 };
  const sender = {
    getParameters: () => ({ encodings }),
    setParameters: () => Promise.resolve(),
    getStats: () => {
      reported.bytesReceived += reported.perSecond;
      const { bytesReceived } = reported;
      return Promise.resolve(
        new Map<string, object>([
          ['h', { type: 'outbound-rtp', rid: 'h', targetBitrate: reported.best }],
          ['l', { type: 'outbound-rtp', rid: 'l', targetBitrate: 120_000 }],
          ['p', { type: 'candidate-pair', nominated: true, bytesReceived, availableOutgoingBitrate: 200_000 }],
        ]),
      );
    },
  } as unknown as RTCRtpSender;
  const track = { trackId: 'camera', encodings: structuredClone(encodings), muted: false } as unknown as LocalTrack;
  const publisher = { tracks: new Map([['camera', track]]), senderOf: () => sender };
  const layers = new SentLayers(publisher);
  const uplink = new UplinkLayers(publisher, layers);
  uplink.begin();
  const pass = (seconds: number) => jest.advanceTimersByTimeAsync(1_000 * seconds);
  const isBestSent = () => encodings[0]?.active;
  return { sender, reported, layers, uplink, pass, isBestSent };
}

describe('the layers that are sent', () => {
  test('begin anew, and are measured anew, when the sender sends another track', async () => {
    const { sender, reported, layers, uplink, pass, isBestSent } = setUp();
    reported.best = 30_000;
    await pass(8);
    expect(isBestSent()).toBe(false);
    // The section of a track that has ended carries the next one.
    uplink.reset(sender);
    layers.begin('camera');
    await pass(4);
    expect(isBestSent()).toBe(true);
    await pass(4);
    expect(isBestSent()).toBe(false);
    uplink.close();
  });

  test('stay during a cut, and for the time that the browser needs after it', async () => {
    const { reported, uplink, pass, isBestSent } = setUp();
    await pass(10);
    Object.assign(reported, { best: 0, perSecond: 0 });
    await pass(12);
    Object.assign(reported, { best: 30_000, perSecond: 1_000 });
    await pass(3);
    reported.best = 400_000;
    await pass(10);
    expect(isBestSent()).toBe(true);
    reported.best = 30_000;
    await pass(3);
    expect(isBestSent()).toBe(false);
    uplink.close();
  });
});
