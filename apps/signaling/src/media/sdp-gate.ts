import { PERMISSION_OF_SOURCE, type Permission } from '@callplane/core';
import { PROTOCOL_LIMITS, type ClientMessages, type TrackKind, type TrackSource } from '@callplane/protocol';
import { isDeepStrictEqual } from 'node:util';
import sdpTransform, { type MediaDescription, type SessionDescription } from 'sdp-transform';
import { RequestFailure } from '../clients/client.js';
import { numberFault } from './sdp-numbers.js';

/** A track that the client declares, with the media section that carries it. */
export type DeclaredTrack = ClientMessages['publish']['tracks'][number];

/** A track that an offer actually sends. */
export interface SendingTrack {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
  mid: string;
  muted: boolean;
  /** As in `TrackState`. */
  extensionId?: number | undefined;
}

type Direction = NonNullable<MediaDescription['direction']>;

export interface CheckedOffer {
  /** The validated description, serialised again. Only this form goes to the media server. */
  sdp: string;
  tracks: SendingTrack[];
  /** Identifies the client's RTCPeerConnection: the session id in the `o=` line is the same in all its offers. */
  peerConnection: string;
}

interface CheckedAnswer {
  sdp: string;
  /** The media sections that the client does not receive. */
  refusedMids: string[];
}

const MID_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,64}$/;
/** Printable ASCII, tab, CR and LF. With other characters, two parsers could disagree on where a line ends. */
const TEXT_PATTERN = /^[\x20-\x7e\t\r\n]*$/;

interface Section {
  mid: string;
  kind: TrackKind;
  direction: Direction;
}

interface ReadDescription {
  text: string;
  origin: string;
  sections: Section[];
}

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
 * @throws RequestFailure `invalid_sdp` or `permission_denied`
 */
export function checkOffer(
  sdp: string,
  declared: readonly DeclaredTrack[],
  permissions: readonly Permission[],
): CheckedOffer {
  const read = readDescription(sdp, SECTIONS_MAX);
  const byMid = new Map<string, { track: DeclaredTrack; path: string }>();
  const trackIds = new Set<string>();
  for (const [index, track] of declared.entries()) {
    const path = `tracks[${index}]`;
    if (byMid.has(track.mid)) throw mismatch(`${path}.mid`, 'is declared for more than one track');
    if (trackIds.has(track.trackId)) throw mismatch(`${path}.trackId`, 'is declared more than once');
    trackIds.add(track.trackId);
    byMid.set(track.mid, { track, path });
  }

  const tracks: SendingTrack[] = [];
  const sendingOf = { audio: 0, video: 0 };
  for (const { mid, kind, direction } of read.sections) {
    if (!sends(direction)) continue;
    const declaration = byMid.get(mid);
    if (declaration === undefined) throw mismatch('sdp', `must declare the sending section ${mid}`);
    const { track, path } = declaration;
    byMid.delete(mid);
    if (KIND_OF_SOURCE[track.source] !== kind) {
      throw mismatch(`${path}.source`, `is ${track.source}, but its section is ${kind}`);
    }
    sendingOf[kind] += 1;
    if (sendingOf[kind] > SENDING_PER_KIND_MAX) {
      throw mismatch('sdp', `sends more than ${SENDING_PER_KIND_MAX} ${kind} sections`);
    }
    requirePermission(permissions, PERMISSION_OF_SOURCE[track.source], path);
    // SDP does not tell a camera from a screen. The second sending section of a kind always counts as a screen's.
    if (sendingOf[kind] > 1) requirePermission(permissions, 'screen:publish', path);
    tracks.push({ trackId: track.trackId, kind, source: track.source, mid, muted: track.muted ?? false });
  }
  const [unused] = byMid.values();
  if (unused !== undefined) throw mismatch(`${unused.path}.mid`, 'is not a sending section of the offer');
  // Without this, participants who may publish nothing could occupy the media server with peer connections.
  if (tracks.length === 0) throw invalid('The offer sends no track. To stop sending, use `unpublish`.');
  return { sdp: read.text, tracks, peerConnection: read.origin };
}

const SOURCES_OF_KIND = { audio: ['microphone', 'screen_audio'], video: ['camera', 'screen'] } as const;

/**
 * Declares the tracks of an offer whose client cannot: the first section of a kind is a camera or microphone if the
 * participant may publish that, else a screen or its sound. A track has the name of its source.
 * @throws RequestFailure as {@link checkOffer}
 */
export function declareTracks(sdp: string, permissions: readonly Permission[]): DeclaredTrack[] {
  const sending = readDescription(sdp, SECTIONS_MAX).sections.filter(({ direction }) => sends(direction));
  const taken: Record<TrackKind, TrackSource[]> = { audio: [], video: [] };
  const tracks = sending.map(({ mid, kind }): DeclaredTrack => {
    const free = SOURCES_OF_KIND[kind].filter((source) => !taken[kind].includes(source));
    const source = free.find((one) => permissions.includes(PERMISSION_OF_SOURCE[one])) ?? free[0];
    if (source === undefined) throw mismatch('sdp', `sends more than ${SENDING_PER_KIND_MAX} ${kind} sections`);
    taken[kind].push(source);
    return { trackId: source, mid, source };
  });
  checkOffer(sdp, tracks, permissions);
  return tracks;
}

function requirePermission(permissions: readonly Permission[], needed: Permission, path: string): void {
  if (permissions.includes(needed)) return;
  const details = [{ path, message: `needs ${needed}` }];
  throw new RequestFailure('permission_denied', 'The participant lacks a required permission.', details);
}

/**
 * Checks that a subscriber's answer receives and never sends.
 * @throws RequestFailure `invalid_sdp`
 */
export function checkAnswer(sdp: string): CheckedAnswer {
  const { sections, text } = readDescription(sdp, ANSWER_SECTIONS_MAX);
  const sending = sections.filter(({ direction }) => sends(direction));
  if (sending.length > 0) {
    throw invalid(
      'An answer must not send.',
      sending.map(({ mid }) => ({ path: 'sdp', message: `section ${mid} must not send` })),
    );
  }
  const refusedMids = sections.filter(({ direction }) => direction === 'inactive').map(({ mid }) => mid);
  return { sdp: text, refusedMids };
}

function sends(direction: Direction): boolean {
  return direction === 'sendrecv' || direction === 'sendonly';
}

/**
 * Checks a client's candidate and writes it anew, without unknown attributes.
 * @throws RequestFailure `invalid_sdp`
 */
export function checkCandidate(line: string): string {
  // Browsers mark the end of candidates by an empty one, too.
  if (line === '') return line;
  if (!/^[\x20-\x7e]*$/.test(line)) throw invalid('The candidate has characters other than printable ASCII.');
  const { candidates = [] } = parse(`a=${line}`) as Partial<MediaDescription>;
  requireNumbers({ candidates });
  const text = sdpTransform.write({ candidates, media: [] } as unknown as SessionDescription);
  const [, written] = /^a=(candidate:.*)\r$/m.exec(text) ?? [];
  if (written === undefined) throw invalid('The candidate cannot be parsed.');
  return written;
}

/** Parses a description, drops unknown attributes, and serialises it with an explicit direction in every section. */
function readDescription(sdp: string, sectionsMax: number): ReadDescription {
  if (sdp.length > PROTOCOL_LIMITS.sdpCharsMax) throw invalid('The session description is too long.');
  if (!TEXT_PATTERN.test(sdp)) throw invalid('The session description has characters other than printable ASCII.');
  const parsed = parse(withOneFingerprint(sdp));
  const { origin } = parsed;
  // The type says that `origin` always exists, but a hostile description may lack it.
  if ((origin as unknown) === undefined) throw invalid('The session description has no origin line.');
  if (parsed.media.length > sectionsMax) {
    throw invalid(`The session description has more than ${sectionsMax} media sections.`);
  }
  const mids = new Set<string>();
  const sections: Section[] = [];
  const media: MediaDescription[] = [];
  for (const section of parsed.media) {
    if (section.type !== 'audio' && section.type !== 'video') {
      throw invalid('Only audio and video sections are supported. Send data with `message`.');
    }
    if (!/^UDP\/TLS\/RTP\/SAVPF?$/.test(section.protocol)) {
      throw invalid('Media must be encrypted: use UDP/TLS/RTP/SAVPF.');
    }
    const mid = midOf(section);
    if (!MID_PATTERN.test(mid)) throw invalid('Every media section needs a mid.');
    if (mids.has(mid)) throw invalid(`The mid ${mid} is used more than once.`);
    mids.add(mid);
    // RFC 8866, section 6.7: a section without a direction has the session's. Without either, it is sendrecv.
    const declared = section.direction ?? parsed.direction ?? 'sendrecv';
    // A section with port 0 is a rejected one, unless it is bundle-only (RFC 9143, section 6).
    const direction = section.port === 0 && section.bundleOnly === undefined ? 'inactive' : declared;
    sections.push({ mid, kind: section.type, direction });
    const kept = { ...pick(section, SECTION_FIELDS), direction } as MediaDescription;
    requireNumbers({ ...kept, payloads: section.payloads ?? '' });
    media.push(kept);
  }
  const session = pick(parsed, SESSION_FIELDS);
  requireNumbers(session);
  const kept = { ...session, media } as SessionDescription;
  const text = sdpTransform.write(kept);
  // Parses our own output again and rejects it if it differs from the validated description.
  const again = parse(text);
  const sectionsAgain = again.media.map((one) => ({ mid: midOf(one), kind: one.type, direction: one.direction }));
  if (again.direction !== undefined || !isDeepStrictEqual(sectionsAgain, sections))
    throw invalid('The session description cannot be parsed.');
  return { text, origin: `${origin.username} ${origin.sessionId}`, sections };
}

/**
 * aiortc names the hash of its certificate three times (RFC 8122, section 5). sdp-transform keeps the last one, and Janus
 * knows SHA-256.
 */
function withOneFingerprint(sdp: string): string {
  return /^a=fingerprint:sha-256 /im.test(sdp) ? sdp.replace(/^a=fingerprint:(?!sha-256 ).*\r?\n?/gim, '') : sdp;
}

function requireNumbers(part: Parameters<typeof numberFault>[0]): void {
  const fault = numberFault(part);
  if (fault !== null)
    throw invalid('The session description has an invalid number.', [{ path: 'sdp', message: fault }]);
}

/** Returns the mid as a string. sdp-transform turns numeric mids into numbers, although its types say otherwise. */
function midOf({ mid }: MediaDescription): string {
  return String((mid as string | number | undefined) ?? '');
}

function parse(sdp: string): SessionDescription {
  try {
    return sdpTransform.parse(sdp);
  } catch {
    throw invalid('The session description cannot be parsed.');
  }
}

/** The attributes that pass. Unknown ones are dropped, because a media server might interpret them in its own way. */
const SESSION_FIELDS = words(`
  version origin name timing connection bandwidth setup iceUfrag icePwd fingerprint iceOptions extmapAllowMixed
  msidSemantic groups`);
const SECTION_FIELDS = words(`
  type port protocol payloads connection bandwidth rtp fmtp rtcp rtcpFb rtcpFbTrrInt rtcpMux rtcpRsize ext
  extmapAllowMixed setup mid msid iceUfrag icePwd fingerprint iceOptions candidates endOfCandidates ssrcs ssrcGroups
  rids simulcast ptime maxptime bundleOnly`);

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

function pick(from: object, fields: readonly string[]): Record<string, unknown> {
  const source = from as Record<string, unknown>;
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(source, field)).map((field) => [field, source[field]]),
  );
}

function invalid(message: string, details?: { path: string; message: string }[]): RequestFailure {
  return new RequestFailure('invalid_sdp', message, details);
}

function mismatch(path: string, message: string): RequestFailure {
  return invalid('The offer and its tracks do not match.', [{ path, message }]);
}
