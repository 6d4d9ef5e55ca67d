import { expect, test } from '@jest/globals';
import { sectionsWithoutCodec, withFallbackCodec } from './fallback-codec.js';

const HEAD = 'v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1 2 3\r\n';
const section = (kind: 'audio' | 'video', mid: number, ...codecs: [payload: number, name: string][]) =>
  [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${codecs.map(([payload]) => payload).join(' ')}`,
    `a=mid:${mid}`,
    ...codecs.map(([payload, name]) => `a=rtpmap:${payload} ${name}`),
    '',
  ].join('\r\n');
const OPUS = [111, 'opus/48000/2'] as [number, string];
const VP8 = [96, 'VP8/90000'] as [number, string];
const [H264, RTX] = [
  [107, 'H264/90000'],
  [108, 'rtx/90000'],
] as [number, string][];
const OFFER =
  HEAD +
  section('audio', 0, OPUS) +
  section('video', 1, VP8, [97, 'rtx/90000']) +
  section('video', 2, H264!, RTX!) +
  section('video', 3, H264!, RTX!);

test('every video section of an offer can be answered with VP8', () => {
  expect(withFallbackCodec(OFFER)).toBe(
    HEAD +
      section('audio', 0, OPUS) +
      section('video', 1, VP8, [97, 'rtx/90000']) +
      section('video', 2, H264!, RTX!, VP8) +
      section('video', 3, H264!, RTX!, VP8),
  );
});

test('sections whose answer lacks the codec of their stream are found', () => {
  const answer =
    HEAD +
    section('audio', 0, OPUS) +
    section('video', 1, VP8) +
    section('video', 2, VP8) +
    section('video', 3, H264!, RTX!, VP8);
  expect(sectionsWithoutCodec(withFallbackCodec(OFFER), answer)).toEqual(['2']);
  expect(sectionsWithoutCodec(withFallbackCodec(OFFER), HEAD)).toEqual([]);
});
