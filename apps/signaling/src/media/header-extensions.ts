import type { CheckedOffer } from './sdp-gate.js';

/** RFC 6464, and 3GPP TS 26.114. */
const EXTENSION =
  /^a=extmap:(\d+)(?:\/\w+)? (?:urn:ietf:params:rtp-hdrext:ssrc-audio-level|urn:3gpp:video-orientation)\s/m;

/**
 * Notes for each track which header extension carries its level or its orientation: another media server that gets the
 * packets has to know it. An answer keeps the ids of its offer.
 */
export function noteExtensions(offer: Pick<CheckedOffer, 'sdp' | 'tracks'>): void {
  const [, ...sections] = offer.sdp.split(/^(?=m=)/m);
  for (const section of sections) {
    const [, mid] = /^a=mid:(\S+)/m.exec(section) ?? [];
    const [, id] = EXTENSION.exec(section) ?? [];
    const track = offer.tracks.find((one) => one.mid === mid);
    if (track !== undefined && id !== undefined) track.extensionId = Number(id);
  }
}
