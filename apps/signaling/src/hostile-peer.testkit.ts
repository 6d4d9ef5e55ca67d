import type { RawPeer } from '@callplane/testing';
import { createRawPeer } from '@callplane/testing';
import type { Joined } from './signaling.testkit.js';

export const PAYLOADS = { opus: 111, video: 96, rtx: 97, red: 98, ulpfec: 99, flexfec: 100 } as const;
export const EXTENSIONS = { level: 1, transportCc: 3, mid: 4, rid: 10, repairedRid: 11, dependency: 14 } as const;
export const SSRCS = { audio: 1111, video: [2221, 2222, 2223], rtx: 3331, flexfec: 3332 } as const;

interface RawOffer {
  /** Layers have ids instead of SSRCs. */
  rids?: boolean;
  /** Has the payload type that all others use for VP8. */
  codec?: string;
}

/** A raw peer that publishes: its tracks are known to the others. */
export async function publishRaw({ client }: Joined, offer: RawOffer = {}): Promise<RawPeer> {
  const peer = await createRawPeer();
  const sdp = offerOf(peer, offer);
  const tracks = [
    { trackId: 'mic', mid: '0', source: 'microphone' },
    { trackId: 'cam', mid: '1', source: 'camera' },
  ];
  const { sdp: answer } = await client.ask({ type: 'publish', sdp, tracks }, 'published');
  await peer.connect(answer, 'controlling');
  return peer;
}

/** A raw peer that receives the camera of a participant. */
export async function receiveRaw({ client }: Joined, participantId: string): Promise<RawPeer> {
  const peer = await createRawPeer();
  await client.ask({ type: 'subscribe', tracks: [{ participantId, trackId: 'cam' }] }, 'ok');
  const { offerId, sdp } = await client.until('offer');
  const answer = sdp
    .replaceAll(/^(?:c=IN|a=(?:candidate|ice-|setup|fingerprint|end-of-candidates|ssrc|msid|rtcp-mux)).*\r\n/gm, '')
    .replaceAll(/^m=.*\r\n/gm, `$&${peer.transport}\r\n`)
    .replaceAll('a=sendonly', 'a=recvonly');
  await client.ask({ type: 'answer', offerId, sdp: answer }, 'ok');
  await peer.connect(sdp, 'controlled');
  return peer;
}

function offerOf(peer: RawPeer, { rids = false, codec = 'VP8' }: RawOffer): string {
  const { video, rtx, red, ulpfec, flexfec } = PAYLOADS;
  const [first, ...others] = SSRCS.video;
  const layers = rids
    ? ['a=rid:h send', 'a=rid:m send', 'a=rid:l send', 'a=simulcast:send h;m;l']
    : [
        `a=ssrc-group:SIM ${[first, ...others].join(' ')}`,
        `a=ssrc-group:FID ${first} ${SSRCS.rtx}`,
        ...[...SSRCS.video, SSRCS.rtx].map((ssrc) => `a=ssrc:${ssrc} cname:c`),
      ];
  const extension = (name: keyof typeof EXTENSIONS, uri: string) => `a=extmap:${EXTENSIONS[name]} ${uri}`;
  const mid = extension('mid', 'urn:ietf:params:rtp-hdrext:sdes:mid');
  return [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    'a=group:BUNDLE 0 1',
    `m=audio 9 UDP/TLS/RTP/SAVPF ${PAYLOADS.opus}`,
    peer.transport,
    'a=mid:0',
    'a=sendonly',
    `a=rtpmap:${PAYLOADS.opus} opus/48000/2`,
    extension('level', 'urn:ietf:params:rtp-hdrext:ssrc-audio-level'),
    mid,
    `a=ssrc:${SSRCS.audio} cname:c`,
    `m=video 9 UDP/TLS/RTP/SAVPF ${[video, rtx, red, ulpfec, flexfec].join(' ')}`,
    peer.transport,
    'a=mid:1',
    'a=sendonly',
    `a=rtpmap:${video} ${codec}/90000`,
    `a=rtcp-fb:${video} nack`,
    `a=rtcp-fb:${video} nack pli`,
    `a=rtcp-fb:${video} ccm fir`,
    `a=rtcp-fb:${video} goog-remb`,
    `a=rtcp-fb:${video} transport-cc`,
    `a=rtpmap:${rtx} rtx/90000`,
    `a=fmtp:${rtx} apt=${video}`,
    `a=rtpmap:${red} red/90000`,
    `a=rtpmap:${ulpfec} ulpfec/90000`,
    `a=rtpmap:${flexfec} flexfec-03/90000`,
    mid,
    extension('transportCc', 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01'),
    extension('rid', 'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id'),
    extension('repairedRid', 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id'),
    extension('dependency', 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension'),
    ...layers,
    '',
  ].join('\r\n');
}

/** A header extension: its id and its value. */
type Element = [id: number, value: Buffer | string];

/** An RTP packet. */
export function rtp(
  {
    ssrc,
    payload,
    sequence,
    timestamp = sequence * 3000,
    marker = true,
    elements = [],
  }: {
    ssrc: number;
    payload: number;
    sequence: number;
    timestamp?: number;
    marker?: boolean;
    elements?: readonly Element[];
  },
  body: Buffer,
): Buffer {
  const header = Buffer.alloc(12);
  header[0] = 0x80 | (elements.length > 0 ? 0x10 : 0);
  header[1] = payload | (marker ? 0x80 : 0);
  header.writeUInt16BE(sequence & 0xffff, 2);
  header.writeUInt32BE(timestamp >>> 0, 4);
  header.writeUInt32BE(ssrc, 8);
  return Buffer.concat([header, elements.length > 0 ? extensionOf(elements) : Buffer.alloc(0), body]);
}

/** In the form with headers of one byte. */
function extensionOf(elements: readonly Element[]): Buffer {
  const parts = elements.map(([id, value]) => {
    const bytes = Buffer.from(value as string);
    return Buffer.concat([Buffer.from([(id << 4) | ((bytes.length - 1) & 0x0f)]), bytes]);
  });
  const body = Buffer.concat(parts);
  const padded = Buffer.concat([Buffer.from([0xbe, 0xde, 0, (body.length + 3) >> 2]), body]);
  return Buffer.concat([padded, Buffer.alloc((4 - (body.length & 3)) & 3)]);
}

/** An RTCP packet; its length field is right unless `words` is another number. */
export function rtcp(type: number, count: number, body: Buffer, words = (body.length + 3) >> 2): Buffer {
  const header = Buffer.from([0x80 | (count & 0x1f), type, (words >> 8) & 0xff, words & 0xff]);
  return Buffer.concat([header, body, Buffer.alloc((4 - (body.length & 3)) & 3)]);
}

/** A key frame of VP8 with 16 × 16 pixels, of which a forwarding server reads the first bytes only. */
export const VP8_KEY_FRAME = Buffer.from([
  0x10, 0x50, 0x01, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00, 0x00, 0x00,
]);

/** Requests for key frames in an RTCP packet of the media server: PLI and FIR. */
export function keyFrameRequests(compound: Buffer): number {
  let requests = 0;
  for (let at = 0; at + 4 <= compound.length; at += 4 * (compound.readUInt16BE(at + 2) + 1)) {
    const format = compound[at]! & 0x1f;
    if (compound[at + 1] === 206 && (format === 1 || format === 4)) requests += 1;
  }
  return requests;
}

export function uint32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * index);
  return bytes;
}
