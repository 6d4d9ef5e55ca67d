import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LocalTrack } from './local-track.js';
import { SentLayers } from './sent-layers.js';

const MAX = [500_000, 120_000];

/** A camera in two layers, and what its sender reports. */
function setUp() {
  const encodings: RTCRtpEncodingParameters[] = ['h', 'l'].map((rid, at) => ({ rid, active: true, maxBitrate: MAX[at] ?? 0 })); // oxfmt-ignore
  const parameters = { encodings };
  const reported = { best: 500_000, bytesReceived: 0, perSecond: 1_000 };
  const sender = {
    getParameters: () => parameters,
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
  layers.measure();
  const pass = (seconds: number) => jest.advanceTimersByTimeAsync(1_000 * seconds);
  const isBestSent = () => parameters.encodings[0]?.active;
  return { track, encodings: () => parameters.encodings, reported, layers, pass, isBestSent };
}

/** One turn of the event loop, for changes that run one after another. */
const settled = () => new Promise(setImmediate);

describe('layers that are received', () => {
  const encodings = (...active: (boolean | undefined)[]) =>
    active.map((one) => (one === undefined ? {} : { active: one }));
  /** A camera, and which of its encodings were written. */
  function camera(...before: (boolean | undefined)[]) {
    const written: (boolean | undefined)[][] = [];
    const parameters = { encodings: encodings(...before) };
    const sender = {
      getParameters: () => structuredClone(parameters),
      setParameters: (next: typeof parameters) => {
        parameters.encodings = next.encodings;
        written.push(next.encodings.map(({ active }) => active));
        return Promise.resolve();
      },
    } as unknown as RTCRtpSender;
    const senderOf = (trackId: string) => (trackId === 'camera' ? sender : undefined);
    return { layers: new SentLayers({ tracks: new Map(), senderOf }), written };
  }

  test.each([
    [[true, true, true], [0, 1, 2], []],
    [[true, undefined, true], [0, 1], [[false, true, true]]],
    [[true, true, true], [2], [[true, false, false]]],
    [[false, false, true], [], [[false, false, false]]],
    [[false, false], [0], [[false, true]]],
    // The highest of two layers, and of one.
    [[false, true], [2], [[true, false]]],
    [[false], [2], [[true]]],
  ])('are active, and no others: of %j, %j', async (before, wanted, expected) => {
    const { layers, written } = camera(...before);
    layers.receive({ tracks: [{ trackId: 'camera', layers: wanted }] });
    await settled();
    expect(written).toEqual(expected);
  });

  test('are applied to the sender of the track, and forgotten with it', async () => {
    const { layers, written } = camera(true, true);
    layers.receive({ tracks: [{ trackId: 'camera', layers: [0] }, { trackId: 'gone', layers: [0] }] }); // oxfmt-ignore
    layers.receive({ tracks: [{ trackId: 'camera', layers: [] }] });
    await settled();
    // Of several messages, the last one counts.
    expect(written).toEqual([[false, false]]);
    layers.begin('camera');
    await settled();
    expect(written.at(-1)).toEqual([true, true]);
  });
});

describe('layers that the uplink affords', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('begin anew, and are measured anew, when the sender sends another track', async () => {
    const { reported, layers, pass, isBestSent } = setUp();
    reported.best = 30_000;
    await pass(8);
    expect(isBestSent()).toBe(false);
    // The section of a track that has ended carries the next one.
    layers.begin('camera');
    await pass(4);
    expect(isBestSent()).toBe(true);
    await pass(4);
    expect(isBestSent()).toBe(false);
    layers.close();
  });

  test('are the used ones after the media has got another size, and those above them are requested of the highest', async () => {
    const { layers, pass, isBestSent, encodings, track } = setUp();
    layers.receive({ tracks: [{ trackId: 'camera', layers: [1] }] });
    await pass(1);
    expect(isBestSent()).toBe(true);
    layers.fit(track, [
      { rid: 'h', active: false },
      { rid: 'l', active: true, scaleResolutionDownBy: 1, maxBitrate: 250_000 },
    ]);
    await pass(8);
    expect(encodings()).toEqual([
      { rid: 'h', active: false },
      { rid: 'l', active: true, scaleResolutionDownBy: 1, maxBitrate: 250_000 },
    ]);
    layers.close();
  });

  test('stay during a cut, and for the time that the browser needs after it', async () => {
    const { reported, layers, pass, isBestSent } = setUp();
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
    layers.close();
  });
});
