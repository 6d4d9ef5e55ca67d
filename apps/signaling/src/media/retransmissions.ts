import sdpTransform, { type MediaDescription } from 'sdp-transform';

const REPAIRED_STREAM = 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id';

/**
 * Takes RTX (RFC 4588) out of an offer, so that the media server takes no packet for a retransmission. An outdated one
 * dies of a short retransmission.
 * @param sdp an offer that has passed the gate
 */
export function withoutRetransmissions(sdp: string): string {
  const description = sdpTransform.parse(sdp);
  // The types say that every section has every attribute.
  for (const section of description.media as Partial<MediaDescription>[]) {
    const { rtp = [], fmtp = [], ssrcGroups = [] } = section;
    const payloads = new Set(rtp.filter(({ codec }) => codec.toLowerCase() === 'rtx').map(({ payload }) => payload));
    const pairs = ssrcGroups.filter(({ semantics }) => semantics === 'FID');
    // RFC 5576, section 4.2: the first of a pair is the stream, the others repeat it.
    const ssrcs = new Set(pairs.flatMap((pair) => pair.ssrcs.split(' ').slice(1).map(Number)));
    const isKept = ({ payload }: { payload: string | number }) => !payloads.has(Number(payload));
    section.rtp = rtp.filter(isKept);
    section.fmtp = fmtp.filter(isKept);
    // A lone number is parsed as a number.
    const formats = String(section.payloads).split(' ');
    section.payloads = formats.filter((payload) => !payloads.has(Number(payload))).join(' ');
    section.rtcpFb &&= section.rtcpFb.filter(isKept);
    section.ext &&= section.ext.filter(({ uri }) => uri !== REPAIRED_STREAM);
    section.ssrcs &&= section.ssrcs.filter(({ id }) => !ssrcs.has(id));
    section.ssrcGroups &&= ssrcGroups.filter((group) => !pairs.includes(group));
  }
  return sdpTransform.write(description);
}
