import { createRtcPeer } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { withoutRetransmissions } from './retransmissions.js';

test('an offer without retransmissions keeps its media and its simulcast layers', () => {
  const kept = [
    'v=0',
    'o=- 1 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    'm=audio 9 UDP/TLS/RTP/SAVPF 111 0',
    'a=mid:0',
    'a=rtpmap:111 opus/48000/2',
    'a=fmtp:111 minptime=10;useinbandfec=1',
    'm=video 9 UDP/TLS/RTP/SAVPF 96 98',
    'a=mid:1',
    'a=rtpmap:96 VP8/90000',
    'a=rtcp-fb:96 nack pli',
    'a=rtpmap:98 H264/90000',
    'a=fmtp:98 packetization-mode=1',
    'a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
    'a=ssrc-group:SIM 1 3',
    'a=ssrc:1 cname:a',
    'a=ssrc:3 cname:a',
    'm=video 9 UDP/TLS/RTP/SAVPF 96',
    'a=mid:2',
    'a=rtpmap:96 VP8/90000',
  ];
  const offered = kept.flatMap((line) => {
    if (line === 'm=video 9 UDP/TLS/RTP/SAVPF 96 98') return ['m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99'];
    if (line === 'a=rtcp-fb:96 nack pli')
      return [line, 'a=rtcp-fb:97 nack', 'a=rtpmap:97 rtx/90000', 'a=fmtp:97 apt=96'];
    if (line.startsWith('a=fmtp:98')) return [line, 'a=rtpmap:99 RTX/90000', 'a=fmtp:99 apt=98'];
    if (line.startsWith('a=extmap')) {
      return [line, 'a=extmap:5 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id'];
    }
    if (line.startsWith('a=ssrc-group')) return [line, 'a=ssrc-group:FID 1 2', 'a=ssrc-group:FID 3 4'];
    if (line.startsWith('a=ssrc:')) return [line, line.replace('1', '2').replace('3', '4')];
    return [line];
  });
  expect(offered.length).toBe(kept.length + 10);
  const lines = (sdp: string) =>
    sdp
      .split('\r\n')
      .filter((line) => line !== '')
      .sort();
  expect(lines(withoutRetransmissions(offered.join('\r\n')))).toEqual(lines(kept.join('\r\n')));
});

test('a client offers retransmissions, which this takes out', async () => {
  const peer = await createRtcPeer();
  peer.addVideo();
  const offer = await peer.offer();
  peer.close();
  expect(offer).toMatch(/rtx[^]*ssrc-group:FID/);
  expect(withoutRetransmissions(offer)).not.toMatch(/rtx|apt=|FID|repaired-rtp/);
});
