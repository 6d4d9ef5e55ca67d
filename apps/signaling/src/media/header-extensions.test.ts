import { expect, test } from '@jest/globals';
import { noteExtensions } from './header-extensions.js';
import type { SendingTrack } from './sdp-gate.js';

test('each track gets the id of its own extension, and none without one', () => {
  const section = (mid: string, ...lines: string[]) => ['m=video 9 UDP/TLS/RTP/SAVPF 96', ...lines, `a=mid:${mid}`];
  const sdp = [
    'v=0',
    'a=extmap:9 urn:3gpp:video-orientation',
    ...section('0', 'a=extmap:14 urn:ietf:params:rtp-hdrext:ssrc-audio-level'),
    ...section(
      '1',
      'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid',
      'a=extmap:13/recvonly urn:3gpp:video-orientation',
    ),
    ...section('2', 'a=extmap:5 urn:3gpp:video-orientation-of-mine'),
    '',
  ].join('\r\n');
  const track = (mid: string): SendingTrack => ({ trackId: mid, kind: 'video', source: 'camera', mid, muted: false });
  const offer = { sdp, tracks: [track('2'), track('1'), track('0')] };
  noteExtensions(offer);
  expect(offer.tracks.map(({ extensionId }) => extensionId)).toEqual([undefined, 13, 14]);
});
