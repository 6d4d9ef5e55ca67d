import sdpTransform, { type MediaDescription } from 'sdp-transform';

const REPAIRED_STREAM = 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id';

/** The types of sdp-transform say that every section has every list. */
type Lists = Partial<Pick<MediaDescription, 'rtp' | 'fmtp' | 'ext' | 'rtcpFb' | 'ssrcs' | 'ssrcGroups'>>;

/**
 * Takes RTX (RFC 4588) out of an offer, so that the media server takes no packet for a retransmission. An outdated one
 * dies of a short retransmission.
 * @param sdp an offer that has passed the gate
 */
export function withoutRetransmissions(sdp: string): string {
  const description = sdpTransform.parse(sdp);
  for (const section of description.media) {
    const { rtp, fmtp, ext, rtcpFb, ssrcs, ssrcGroups } = section as Lists;
    const payloads = new Set(rtp?.filter(({ codec }) => codec.toLowerCase() === 'rtx').map(({ payload }) => payload));
    const pairs = ssrcGroups?.filter(({ semantics }) => semantics === 'FID') ?? [];
    // RFC 5576, section 4.2: the first of a pair is the stream, the others repeat it.
    const repeating = new Set(pairs.flatMap((pair) => pair.ssrcs.split(' ').slice(1).map(Number)));
    const isKept = ({ payload }: { payload: string | number }) => !payloads.has(Number(payload));
    // A lone number is parsed as a number.
    const formats = String(section.payloads).split(' ');
    Object.assign(section, {
      payloads: formats.filter((payload) => isKept({ payload })).join(' '),
      rtp: rtp?.filter(isKept),
      fmtp: fmtp?.filter(isKept),
      rtcpFb: rtcpFb?.filter(isKept),
      ext: ext?.filter(({ uri }) => uri !== REPAIRED_STREAM),
      ssrcs: ssrcs?.filter(({ id }) => !repeating.has(id)),
      ssrcGroups: ssrcGroups?.filter((group) => !pairs.includes(group)),
    });
  }
  return sdpTransform.write(description);
}
