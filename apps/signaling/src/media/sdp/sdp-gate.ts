import { PERMISSION_OF_SOURCE, type Permission } from '@callplane/core';
import { PROTOCOL_LIMITS, type ClientMessages, type TrackKind, type TrackSource } from '@callplane/protocol';
import { readDescription, refused, type Direction, type Refusal } from './read-description.js';

/** A track that the client declares, with the media section that carries it. */
export type DeclaredTrack = ClientMessages['publish']['tracks'][number];

/** A track that an offer actually sends. */
export interface SendingTrack {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
  mid: string;
  muted: boolean;
}

export type CheckedOffer =
  | {
      ok: true;
      /** The validated description, serialised again. Only this form goes to the media server. */
      sdp: string;
      tracks: SendingTrack[];
      /** Identifies the client's RTCPeerConnection: the session id in the `o=` line is the same in all its offers. */
      peerConnection: string;
    }
  | { ok: false; refusal: Refusal };

export type CheckedAnswer =
  | {
      ok: true;
      sdp: string;
      /** The media sections that the client does not receive. */
      refusedMids: string[];
    }
  | { ok: false; refusal: Refusal };

/** Maximum number of sections in an offer. Browsers keep a section for every track ever sent, but reuse free ones. */
const SECTIONS_MAX = 32;
/** Maximum number of sections in an answer: twice as many as an offer may have. */
const ANSWER_SECTIONS_MAX = 2 * PROTOCOL_LIMITS.sectionsMax;
const SENDING_PER_KIND_MAX = 2;
const KIND_OF_SOURCE = {
  microphone: 'audio',
  screen_audio: 'audio',
  camera: 'video',
  screen: 'video',
} as const satisfies Record<TrackSource, TrackKind>;

/**
 * Checks a publisher's offer against the session's permissions and the declared tracks. Whether a section carries a
 * camera or a screen is the client's claim. The gate itself enforces how many sections of a kind may send.
 */
export function checkOffer(
  sdp: string,
  declared: readonly DeclaredTrack[],
  permissions: readonly Permission[],
): CheckedOffer {
  const read = readDescription(sdp, SECTIONS_MAX);
  if (!read.ok) return read;
  const details: { path: string; message: string }[] = [];
  const byMid = new Map<string, { track: DeclaredTrack; path: string }>();
  const trackIds = new Set<string>();
  for (const [index, track] of declared.entries()) {
    const path = `tracks[${index}]`;
    if (byMid.has(track.mid)) details.push({ path: `${path}.mid`, message: 'is declared for more than one track' });
    if (trackIds.has(track.trackId)) details.push({ path: `${path}.trackId`, message: 'is declared more than once' });
    trackIds.add(track.trackId);
    byMid.set(track.mid, { track, path });
  }

  const tracks: SendingTrack[] = [];
  const denied: { path: string; message: string }[] = [];
  const sendingOf = { audio: 0, video: 0 };
  for (const { mid, kind, direction } of read.sections) {
    if (!sends(direction)) continue;
    const declaration = byMid.get(mid);
    if (declaration === undefined) {
      details.push({ path: 'sdp', message: `must declare the sending section ${mid}` });
      continue;
    }
    const { track, path } = declaration;
    byMid.delete(mid);
    if (KIND_OF_SOURCE[track.source] !== kind) {
      details.push({ path: `${path}.source`, message: `is ${track.source}, but its section is ${kind}` });
      continue;
    }
    sendingOf[kind] += 1;
    if (sendingOf[kind] > SENDING_PER_KIND_MAX) {
      details.push({ path: 'sdp', message: `sends more than ${SENDING_PER_KIND_MAX} ${kind} sections` });
      continue;
    }
    const needed = new Set<Permission>([PERMISSION_OF_SOURCE[track.source]]);
    // SDP does not tell a camera from a screen. The second sending section of a kind always counts as a screen's.
    if (sendingOf[kind] > 1) needed.add('screen:publish');
    for (const permission of needed) {
      if (!permissions.includes(permission)) denied.push({ path, message: `needs ${permission}` });
    }
    tracks.push({ trackId: track.trackId, kind, source: track.source, mid, muted: track.muted ?? false });
  }
  for (const { path } of byMid.values()) {
    details.push({ path: `${path}.mid`, message: 'is not a sending section of the offer' });
  }
  if (details.length > 0) return refused('invalid_sdp', 'The offer and its tracks do not match.', details);
  if (denied.length > 0) return refused('permission_denied', 'The participant lacks a required permission.', denied);
  return { ok: true, sdp: read.text, tracks, peerConnection: read.origin };
}

/** Checks that a subscriber's answer receives and never sends. */
export function checkAnswer(sdp: string): CheckedAnswer {
  const read = readDescription(sdp, ANSWER_SECTIONS_MAX);
  if (!read.ok) return read;
  const sending = read.sections.filter(({ direction }) => sends(direction));
  if (sending.length > 0) {
    return refused(
      'invalid_sdp',
      'An answer must not send.',
      sending.map(({ mid }) => ({ path: 'sdp', message: `section ${mid} must not send` })),
    );
  }
  const refusedMids = read.sections.filter(({ direction }) => direction === 'inactive').map(({ mid }) => mid);
  return { ok: true, sdp: read.text, refusedMids };
}

function sends(direction: Direction): boolean {
  return direction === 'sendrecv' || direction === 'sendonly';
}
