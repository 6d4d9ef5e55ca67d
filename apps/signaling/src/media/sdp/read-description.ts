import { PROTOCOL_LIMITS, type ErrorCode, type TrackKind } from '@callplane/protocol';
import sdpTransform, { type MediaDescription, type SessionDescription } from 'sdp-transform';

export interface Refusal {
  code: Extract<ErrorCode, 'invalid_sdp' | 'permission_denied'>;
  message: string;
  details?: { path: string; message: string }[];
}

export type Direction = NonNullable<MediaDescription['direction']>;

const MID_PATTERN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,64}$/;
/** Printable ASCII, tab, CR and LF. With other characters, two parsers could disagree on where a line ends. */
const TEXT_PATTERN = /^[\x20-\x7e\t\r\n]*$/;

interface Section {
  mid: string;
  kind: TrackKind;
  direction: Direction;
}

export type ReadDescription =
  | { ok: true; text: string; origin: string; sections: Section[] }
  | { ok: false; refusal: Refusal };

/** Parses a description, drops unknown attributes, and serialises it with an explicit direction in every section. */
export function readDescription(sdp: string, sectionsMax: number): ReadDescription {
  if (sdp.length > PROTOCOL_LIMITS.sdpCharsMax) return refused('invalid_sdp', 'The session description is too long.');
  if (!TEXT_PATTERN.test(sdp))
    return refused('invalid_sdp', 'The session description has characters other than printable ASCII.');
  const parsed = parse(sdp);
  if (parsed === null) return refused('invalid_sdp', 'The session description cannot be parsed.');
  const { origin } = parsed;
  // The type says that `origin` always exists, but a hostile description may lack it.
  if ((origin as unknown) === undefined) return refused('invalid_sdp', 'The session description has no origin line.');
  if (parsed.media.length > sectionsMax) {
    return refused('invalid_sdp', `The session description has more than ${sectionsMax} media sections.`);
  }
  const mids = new Set<string>();
  const sections: Section[] = [];
  const media: MediaDescription[] = [];
  for (const section of parsed.media) {
    if (section.type !== 'audio' && section.type !== 'video') {
      return refused('invalid_sdp', 'Only audio and video sections are supported. Send data with `message`.');
    }
    if (!/^UDP\/TLS\/RTP\/SAVPF?$/.test(section.protocol)) {
      return refused('invalid_sdp', 'Media must be encrypted: use UDP/TLS/RTP/SAVPF.');
    }
    const mid = midOf(section);
    if (!MID_PATTERN.test(mid)) return refused('invalid_sdp', 'Every media section needs a mid.');
    if (mids.has(mid)) return refused('invalid_sdp', `The mid ${mid} is used more than once.`);
    mids.add(mid);
    // RFC 8866, section 6.7: a section without a direction has the session's. Without either, it is sendrecv.
    const declared = section.direction ?? parsed.direction ?? 'sendrecv';
    // A section with port 0 is a rejected one, unless it is bundle-only (RFC 9143, section 6).
    const direction = section.port === 0 && section.bundleOnly === undefined ? 'inactive' : declared;
    sections.push({ mid, kind: section.type, direction });
    media.push({ ...pick(section, SECTION_FIELDS), direction } as MediaDescription);
  }
  const kept = { ...pick(parsed, SESSION_FIELDS), media } as SessionDescription;
  const text = sdpTransform.write(kept);
  // Parses our own output again and rejects it if it differs from what was validated.
  const again = parse(text);
  const same =
    again?.media.length === sections.length &&
    again.direction === undefined &&
    again.media.every((section, index) => {
      const checked = sections[index];
      return (
        checked !== undefined &&
        section.type === checked.kind &&
        midOf(section) === checked.mid &&
        section.direction === checked.direction
      );
    });
  if (!same) return refused('invalid_sdp', 'The session description cannot be parsed.');
  return { ok: true, text, origin: `${origin.username} ${origin.sessionId}`, sections };
}

/** Returns the mid as a string. sdp-transform turns numeric mids into numbers, although its types say otherwise. */
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

/** The attributes that pass. Unknown ones are dropped, because a media server might interpret them in its own way. */
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

export function refused(
  code: Refusal['code'],
  message: string,
  details?: { path: string; message: string }[],
): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code, message, ...(details === undefined ? {} : { details }) } };
}
