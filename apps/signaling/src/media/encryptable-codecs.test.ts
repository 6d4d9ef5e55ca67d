import { createRtcPeer } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { withEncryptableCodecs } from './encryptable-codecs.js';

const SECTION = ['a=mid:1', 'a=sendonly'];
const offer = (...lines: string[]) => ['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0', ...lines, ''].join('\r\n');
const sending = (sdp: string) => ({
  sdp,
  tracks: [{ trackId: 'c', kind: 'video' as const, source: 'camera' as const, mid: '1', muted: false }],
});

test('an offer for an encrypted room keeps VP8, H.264, Opus and their retransmissions', () => {
  const kept = (payloads: string) => [
    `m=video 9 UDP/TLS/RTP/SAVPF ${payloads}`,
    'a=rtpmap:96 VP8/90000',
    'a=rtpmap:97 rtx/90000',
    'a=rtpmap:102 H264/90000',
    'a=fmtp:97 apt=96',
    'a=fmtp:102 packetization-mode=1',
    'a=rtcp-fb:96 nack pli',
    ...SECTION,
  ];
  const others = ['a=rtpmap:98 VP9/90000', 'a=rtpmap:99 rtx/90000', 'a=fmtp:99 apt=98', 'a=rtcp-fb:98 nack'];
  const more = ['a=rtpmap:45 AV1/90000', 'a=rtpmap:63 red/90000', 'a=rtpmap:64 ulpfec/90000'];
  const written = withEncryptableCodecs(sending(offer(...kept('98 99 45 96 97 102 63 64'), ...others, ...more)));
  const lines = (sdp: string) => sdp.split('\r\n').sort();
  expect(lines(written)).toEqual(lines(offer(...kept('96 97 102'))));
});

test('a track without such a codec is refused, and a section that sends nothing is not', () => {
  const vp9 = ['m=video 9 UDP/TLS/RTP/SAVPF 98', 'a=rtpmap:98 VP9/90000', ...SECTION];
  expect(() => withEncryptableCodecs(sending(offer(...vp9)))).toThrow('VP8, H.264 or Opus');
  expect(withEncryptableCodecs({ sdp: offer(...vp9), tracks: [] })).toContain('VP9');
});

test('an offer of a client keeps its sections', async () => {
  const peer = await createRtcPeer();
  peer.addVideo();
  const written = withEncryptableCodecs(sending(await peer.offer()));
  peer.close();
  expect(written).toMatch(/^m=video (?!0).*\ba=rtpmap:\d+ VP8/ms);
  expect(written).not.toMatch(/VP9|AV1|red\/|ulpfec/);
});
