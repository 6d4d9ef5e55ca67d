import { describe, expect, test } from '@jest/globals';
import { withAudioNack } from './peer.js';

const lines = (...all: string[]) => all.map((line) => `${line}\r\n`).join('');
const AUDIO = ['m=audio 9 UDP/TLS/RTP/SAVPF 111 63', 'a=mid:0', 'a=rtpmap:63 red/48000/2', 'a=rtpmap:111 opus/48000/2'];
const VIDEO = ['m=video 9 UDP/TLS/RTP/SAVPF 96', 'a=mid:1', 'a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96 nack'];

describe('retransmission of audio', () => {
  test('is negotiated for Opus in each audio section, and nothing else changes', () => {
    const before = lines('v=0', ...AUDIO, 'a=fmtp:111 useinbandfec=1', ...VIDEO, ...AUDIO);
    const after = lines('v=0', ...AUDIO, 'a=rtcp-fb:111 nack', 'a=fmtp:111 useinbandfec=1', ...VIDEO, ...AUDIO);
    expect(withAudioNack(before)).toBe(after + lines('a=rtcp-fb:111 nack'));
  });

  test('is not added twice, nor without Opus', () => {
    const with2 = lines('v=0', ...AUDIO, 'a=rtcp-fb:111 nack', 'a=rtcp-fb:111 transport-cc');
    expect(withAudioNack(with2)).toBe(with2);
    const other = lines('v=0', 'm=audio 9 UDP/TLS/RTP/SAVPF 0', 'a=rtpmap:0 PCMU/8000', ...VIDEO);
    expect(withAudioNack(other)).toBe(other);
  });
});
