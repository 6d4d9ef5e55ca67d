import type { Permission } from '@callplane/core';
import {
  PROTOCOL_LIMITS,
  type ClientMessages,
  type ErrorCode,
  type TrackKind,
  type TrackSource,
} from '@callplane/protocol';
import sdpTransform, { type MediaDescription, type SessionDescription } from 'sdp-transform';

/** What a client says that it publishes in which media section. */
export type DeclaredTrack = ClientMessages['publish']['tracks'][number];

/** A track that an offer really sends. */
export interface SendingTrack {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
  mid: string;
  muted: boolean;
}

export interface Refusal {
  code: Extract<ErrorCode, 'invalid_sdp' | 'permission_denied'>;
  message: string;
  details?: { path: string; message: string }[];
}

export type JudgedOffer =
  | {
      ok: true;
      /** The description as it was understood, written anew: the only form that goes to the media server. */
      sdp: string;
      tracks: SendingTrack[];
      /** Identifies the client's RTCPeerConnection: the session id of the `o=` line stays the same over all its offers. */
      peerConnection: string;
    }
  | { ok: false; refusal: Refusal };

export type JudgedAnswer = { ok: true; sdp: string } | { ok: false; refusal: Refusal };

type Direction = NonNullable<MediaDescription['direction']>;

/** Browsers keep a section for each track that was ever sent; slots are used again. */
const SECTIONS_MAX = 32;
/** A subscriber answers a section for each stream that it receives. */
const ANSWER_SECTIONS_MAX = 2 * PROTOCOL_LIMITS.subscriptionsMax;
const SENDING_PER_KIND_MAX = 2;
const MID_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,64}$/;
/** Lines of printable ASCII: nothing that two parsers could take for different line ends. */
const TEXT_PATTERN = /^[\x20-\x7e\t\r\n]*$/;

const KIND_OF_SOURCE = {
  microphone: 'audio',
  screen_audio: 'audio',
  camera: 'video',
  screen: 'video',
} as const satisfies Record<TrackSource, TrackKind>;

const PERMISSION_OF_SOURCE = {
  microphone: 'audio:publish',
  screen_audio: 'screen:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
} as const satisfies Record<TrackSource, Permission>;

/**
 * Judges a publisher's offer against what the token permits and what the client says that it sends. Whether a camera or
 * a screen is behind a section is the client's word; how many sections of a kind may send is not.
 */
export function judgeOffer(
  sdp: string,
  declared: readonly DeclaredTrack[],
  permissions: readonly Permission[],
): JudgedOffer {
  const read = readDescription(sdp, SECTIONS_MAX);
  if (!read.ok) return read;
  const details: { path: string; message: string }[] = [];
  const byMid = new Map<string, { track: DeclaredTrack; path: string }>();
  const trackIds = new Set<string>();
  for (const [index, track] of declared.entries()) {
    const path = `tracks[${index}]`;
    if (byMid.has(track.mid)) details.push({ path: `${path}.mid`, message: 'is declared for another track too' });
    if (trackIds.has(track.trackId)) details.push({ path: `${path}.trackId`, message: 'is declared twice' });
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
      details.push({ path: 'sdp', message: `section ${mid} sends and is not declared in tracks` });
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
    // Nothing in a description tells a camera from a screen: the second section of a kind can only be a screen's.
    if (sendingOf[kind] > 1) needed.add('screen:publish');
    for (const permission of needed) {
      if (!permissions.includes(permission)) denied.push({ path, message: `needs ${permission}` });
    }
    tracks.push({ trackId: track.trackId, kind, source: track.source, mid, muted: track.muted ?? false });
  }
  for (const { path } of byMid.values()) {
    details.push({ path: `${path}.mid`, message: 'names no section of the offer that sends' });
  }
  if (details.length > 0) return refused('invalid_sdp', 'The offer and its tracks do not match.', details);
  if (denied.length > 0) return refused('permission_denied', 'The token does not permit this.', denied);
  return { ok: true, sdp: read.text, tracks, peerConnection: read.origin };
}

/** Judges a subscriber's answer: it receives and never sends. */
export function judgeAnswer(sdp: string): JudgedAnswer {
  const read = readDescription(sdp, ANSWER_SECTIONS_MAX);
  if (!read.ok) return read;
  const sending = read.sections.filter(({ direction }) => sends(direction));
  if (sending.length > 0) {
    return refused(
      'invalid_sdp',
      'An answer must not send.',
      sending.map(({ mid }) => ({ path: 'sdp', message: `section ${mid} sends` })),
    );
  }
  return { ok: true, sdp: read.text };
}

interface Section {
  mid: string;
  kind: TrackKind;
  direction: Direction;
}

type ReadDescription =
  { ok: true; text: string; origin: string; sections: Section[] } | { ok: false; refusal: Refusal };

/** Parses a description, keeps what is known of it, and writes it so that every section says its direction itself. */
function readDescription(sdp: string, sectionsMax: number): ReadDescription {
  if (sdp.length > PROTOCOL_LIMITS.sdpCharsMax) return refused('invalid_sdp', 'The description is too long.');
  if (!TEXT_PATTERN.test(sdp)) return refused('invalid_sdp', 'The description holds more than printable ASCII.');
  const parsed = parse(sdp);
  if (parsed === null) return refused('invalid_sdp', 'The description cannot be parsed.');
  const { origin } = parsed;
  // Types say that there is always one; hostile text says otherwise.
  if ((origin as unknown) === undefined) return refused('invalid_sdp', 'The description has no origin.');
  if (parsed.media.length > sectionsMax) {
    return refused('invalid_sdp', `The description has more than ${sectionsMax} sections.`);
  }
  const mids = new Set<string>();
  const sections: Section[] = [];
  const media: MediaDescription[] = [];
  for (const section of parsed.media) {
    if (section.type !== 'audio' && section.type !== 'video') {
      return refused('invalid_sdp', 'Only audio and video are carried; use messages for data.');
    }
    if (!/^UDP\/TLS\/RTP\/SAVPF?$/.test(section.protocol)) {
      return refused('invalid_sdp', 'Media must be encrypted (UDP/TLS/RTP/SAVPF).');
    }
    const mid = midOf(section);
    if (!MID_PATTERN.test(mid)) return refused('invalid_sdp', 'Every section needs a mid.');
    if (mids.has(mid)) return refused('invalid_sdp', `The mid ${mid} stands twice.`);
    mids.add(mid);
    // RFC 8866, section 6.7: the session's direction holds where a section has none, and sendrecv where neither has one.
    const said = section.direction ?? parsed.direction ?? 'sendrecv';
    // A section with port 0 is rejected, unless it is only bundled (RFC 9143, section 6).
    const direction = section.port === 0 && section.bundleOnly === undefined ? 'inactive' : said;
    sections.push({ mid, kind: section.type, direction });
    media.push({ ...pick(section, SECTION_FIELDS), direction } as MediaDescription);
  }
  const kept = { ...pick(parsed, SESSION_FIELDS), media } as SessionDescription;
  const text = sdpTransform.write(kept);
  // What was judged must be what is read: another reading of the written form has to say the same.
  const again = parse(text);
  const same =
    again?.media.length === sections.length &&
    again.direction === undefined &&
    again.media.every((section, index) => {
      const judged = sections[index];
      return (
        judged !== undefined &&
        section.type === judged.kind &&
        midOf(section) === judged.mid &&
        section.direction === judged.direction
      );
    });
  if (!same) return refused('invalid_sdp', 'The description cannot be parsed.');
  return { ok: true, text, origin: `${origin.username} ${origin.sessionId}`, sections };
}

/** The parser makes numbers of what looks like one, whatever its types say. */
function midOf({ mid }: MediaDescription): string {
  return String((mid as string | number | undefined) ?? '');
}

function parse(sdp: string): SessionDescription | null {
  try {
    return sdpTransform.parse(sdp);
  } catch {
    return null;
  }
}

/** Attributes that nobody here knows are dropped: a media server might read them in its own way. */
const SESSION_FIELDS = [
  'version',
  'origin',
  'name',
  'timing',
  'connection',
  'bandwidth',
  'setup',
  'iceUfrag',
  'icePwd',
  'fingerprint',
  'iceOptions',
  'extmapAllowMixed',
  'msidSemantic',
  'groups',
] as const;
const SECTION_FIELDS = [
  'type',
  'port',
  'protocol',
  'payloads',
  'connection',
  'bandwidth',
  'rtp',
  'fmtp',
  'rtcp',
  'rtcpFb',
  'rtcpFbTrrInt',
  'rtcpMux',
  'rtcpRsize',
  'ext',
  'extmapAllowMixed',
  'setup',
  'mid',
  'msid',
  'iceUfrag',
  'icePwd',
  'fingerprint',
  'iceOptions',
  'candidates',
  'endOfCandidates',
  'ssrcs',
  'ssrcGroups',
  'rids',
  'simulcast',
  'ptime',
  'maxptime',
  'bundleOnly',
] as const;

function pick(from: object, fields: readonly string[]): Record<string, unknown> {
  const source = from as Record<string, unknown>;
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(source, field)).map((field) => [field, source[field]]),
  );
}

function sends(direction: Direction): boolean {
  return direction === 'sendrecv' || direction === 'sendonly';
}

function refused(
  code: Refusal['code'],
  message: string,
  details?: { path: string; message: string }[],
): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code, message, ...(details === undefined ? {} : { details }) } };
}
