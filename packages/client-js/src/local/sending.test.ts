import { describe, expect, test } from '@jest/globals';
import { fittingEncodings, sendingOf, withDtx } from './sending.js';

const media = (width?: number, height?: number, kind = 'video') =>
  ({ kind, getSettings: () => ({ width, height }) }) as unknown as MediaStreamTrack;
const codec = (name: string, sdpFmtpLine?: string): RTCRtpCodec =>
  ({ mimeType: `video/${name}`, clockRate: 90_000, sdpFmtpLine }) as RTCRtpCodec;
const ALL = [
  ...[codec('VP8'), codec('rtx'), codec('VP9', 'profile-id=0'), codec('AV1')],
  codec('H264', 'level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f'),
  codec('H264', 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f'),
  ...[codec('red'), codec('ulpfec')],
];
const rids = (sending: ReturnType<typeof sendingOf>) => sending.encodings?.map(({ rid }) => rid);
const names = (sending: ReturnType<typeof sendingOf>) => sending.codecs?.map(({ mimeType }) => mimeType);

describe('a camera', () => {
  test.each([
    [1280, 720, ['h', 'm', 'l']],
    [960, 540, ['h', 'm', 'l']],
    [640, 360, ['h', 'm']],
    [360, 640, ['h', 'm']],
    [320, 240, [undefined]],
    [undefined, undefined, undefined],
  ])('of %s×%s is sent in as many layers as Chromium sends of this size', (width, height, expected) => {
    const sending = sendingOf('camera', media(width, height), {}, ALL);
    expect(rids(sending)).toEqual(expected);
    expect(sending.codecs).toBeUndefined();
  });

  test('leaves room for what encryption adds, but not of the encodings of the application', () => {
    const ratesOf = (isEncrypted: boolean, encodings?: RTCRtpEncodingParameters[]) =>
      sendingOf('camera', media(1280, 720), { isEncrypted, encodings }, ALL).encodings?.map(
        ({ maxBitrate }) => maxBitrate,
      );
    expect(ratesOf(false)).toEqual([1_200_000, 300_000, 100_000]);
    expect(ratesOf(true)).toEqual([1_184_320, 284_320, 84_320]);
    expect(ratesOf(true, [{ maxBitrate: 300_000 }])).toEqual([300_000]);
    const present = [{ rid: 'h' }, { rid: 'm' }, { rid: 'l' }];
    const fitted = fittingEncodings('camera', media(640, 360), { isEncrypted: true }, present);
    expect(fitted?.map(({ maxBitrate }) => maxBitrate)).toEqual([undefined, 484_320, 84_320]);
  });

  describe('other media in a section that is there', () => {
    const sectionOf = (count: number) => Array.from({ length: count }, (_, at) => ({ rid: ['h', 'm', 'l'][at] ?? '' }));
    const scalesOf = (count: number, width: number, height: number) =>
      fittingEncodings('camera', media(width, height), {}, sectionOf(count))?.map(
        ({ active, scaleResolutionDownBy }) => active !== false && (scaleResolutionDownBy ?? 1),
      );

    test.each([
      [3, 1280, 720, [1, 2, 4]],
      [3, 640, 360, [false, 1, 2]],
      [3, 320, 180, [false, false, 1]],
      [2, 1280, 720, [1, 4]],
      [2, 320, 180, [false, 1]],
      [1, 1280, 720, [1]],
    ])('with %i layers uses those that %i×%i needs, the lowest ones first', (count, width, height, expected) => {
      expect(scalesOf(count, width, height)).toEqual(expected);
    });

    test('stays as it is for encodings of the application, screens, sound and unknown sizes', () => {
      const hd = media(1280, 720);
      expect(fittingEncodings('camera', hd, { encodings: [{}] }, sectionOf(1))).toBeUndefined();
      expect(fittingEncodings('screen', hd, {}, sectionOf(1))).toBeUndefined();
      expect(fittingEncodings('microphone', media(1, 1, 'audio'), {}, sectionOf(1))).toBeUndefined();
      expect(fittingEncodings('camera', media(), {}, sectionOf(3))).toBeUndefined();
    });
  });

  test('is sent in one layer, or in layers of the application, if it says so', () => {
    const hd = media(1280, 720);
    expect(rids(sendingOf('camera', hd, { simulcast: false }, ALL))).toEqual([undefined]);
    const own = [{ maxBitrate: 900_000 }, { maxBitrate: 90_000, scaleResolutionDownBy: 3 }];
    expect(sendingOf('camera', hd, { encodings: own }, ALL).encodings).toEqual([
      { rid: 'h', ...own[0] },
      { rid: 'm', ...own[1] },
    ]);
    expect(sendingOf('microphone', media(undefined, undefined, 'audio'), {}, ALL)).toEqual({
      encodings: undefined,
      codecs: undefined,
      section: 'audio',
    });
  });

  test('is offered with the chosen codec alone, and with VP8 if the browser does not send that codec', () => {
    const hd = media(1280, 720);
    const vp9 = sendingOf('camera', hd, { codec: 'vp9' }, ALL);
    expect([names(vp9), rids(vp9)]).toEqual([['video/VP9', 'video/rtx', 'video/red', 'video/ulpfec'], [undefined]]);
    const h264 = sendingOf('camera', hd, { codec: 'h264' }, ALL);
    expect(h264.codecs?.[0]?.sdpFmtpLine).toContain('packetization-mode=1');
    expect([h264.codecs?.length, rids(h264)]).toEqual([4, ['h', 'm', 'l']]);
    for (const capabilities of [ALL.slice(0, 2), undefined]) {
      const other = sendingOf('camera', hd, { codec: 'av1' }, capabilities);
      expect([other.codecs, rids(other), other.section]).toEqual([undefined, ['h', 'm', 'l'], 'video vp8 hml']);
    }
  });
});

test('a screen is sent in one layer with few pictures a second', () => {
  const { encodings } = sendingOf('screen', media(1920, 1080), {}, ALL);
  expect(encodings).toEqual([{ maxBitrate: 1_500_000, maxFramerate: 15 }]);
});

describe('discontinuous transmission', () => {
  const section = (mid: string, lines: string) =>
    `m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:${mid}\r\na=rtpmap:111 opus/48000/2\r\n${lines}`;

  test('is set for the one section, with the other parameters of the codec', () => {
    const other = section('1', 'a=fmtp:111 useinbandfec=1\r\n');
    const answer = `v=0\r\n${section('0', 'a=fmtp:111 minptime=10;useinbandfec=1\r\n')}${other}`;
    const tuned = withDtx(answer, '0');
    expect(tuned).toContain('a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1\r\n');
    expect(tuned.endsWith(other)).toBe(true);
    expect(withDtx(tuned, '0')).toBe(tuned);
  });
});
