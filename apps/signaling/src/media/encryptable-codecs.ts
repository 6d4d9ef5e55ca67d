import sdpTransform, { type MediaDescription } from 'sdp-transform';
import { RequestFailure } from '../clients/client.js';
import type { CheckedOffer } from './sdp-gate.js';

/** The codecs whose frames clients can encrypt and the media server can still switch. */
const MEDIA_CODECS = new Set(['opus', 'vp8', 'h264']);
const KEPT_CODECS = new Set([...MEDIA_CODECS, 'rtx']);

/** The types of sdp-transform say that every section has every list. */
type Lists = Partial<Pick<MediaDescription, 'rtp' | 'fmtp' | 'rtcpFb'>>;

/**
 * Takes the codecs out of an offer that no client encrypts, so that the media server chooses none of them.
 * @returns the session description
 * @throws RequestFailure `room_encrypted` if a sending section has no other codec
 */
export function withEncryptableCodecs({ sdp, tracks }: Pick<CheckedOffer, 'sdp' | 'tracks'>): string {
  const description = sdpTransform.parse(sdp);
  for (const section of description.media) {
    const { rtp = [], fmtp = [], rtcpFb } = section as Lists;
    const codecs = new Map(rtp.map(({ payload, codec }) => [payload, codec.toLowerCase()]));
    const isOf = (payload: string | number, wanted: ReadonlySet<string>) =>
      wanted.has(codecs.get(Number(payload)) ?? '');
    // A retransmission of a codec that is taken out goes with it.
    const orphans = new Set(
      fmtp.flatMap(({ payload, config }) => {
        const apt = /(?:^|;)\s*apt=(\d+)/.exec(config)?.[1];
        return apt !== undefined && !isOf(apt, MEDIA_CODECS) ? [payload] : [];
      }),
    );
    const isKept = ({ payload }: { payload: string | number }) =>
      payload === '*' || (isOf(payload, KEPT_CODECS) && !orphans.has(Number(payload)));
    const payloads = String(section.payloads)
      .split(' ')
      .filter((payload) => isKept({ payload }));
    const mid = String(section.mid);
    if (!payloads.some((payload) => isOf(payload, MEDIA_CODECS))) {
      if (tracks.some((track) => track.mid === mid)) {
        throw new RequestFailure('room_encrypted', 'A track needs VP8, H.264 or Opus.', [
          { path: 'sdp', message: `section ${mid} has no such codec` },
        ]);
      }
      // A section that sends nothing may keep its codecs.
      continue;
    }
    Object.assign(section, {
      payloads: payloads.join(' '),
      rtp: rtp.filter(isKept),
      fmtp: fmtp.filter(isKept),
      rtcpFb: rtcpFb?.filter(isKept),
    });
  }
  return sdpTransform.write(description);
}
