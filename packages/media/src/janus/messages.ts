import { MediaError, type MediaErrorCode } from '../types.js';

/** A message from Janus with its envelope validated. The code that uses other fields of `body` validates them. */
export interface JanusMessage {
  /** Its kind: `success`, `error`, `ack`, `event`, or a notice such as `hangup`. */
  readonly janus: string;
  readonly transaction: string | undefined;
  readonly session: number | undefined;
  readonly sender: number | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface SessionDescription {
  type: 'offer' | 'answer';
  sdp: string;
}

export function parseJanusMessage(text: string): JanusMessage | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const body = objectOf(parsed);
  const kind = body['janus'];
  if (typeof kind !== 'string') return undefined;
  const { transaction, session_id: session, sender } = body;
  return {
    janus: kind,
    transaction: typeof transaction === 'string' ? transaction : undefined,
    session: typeof session === 'number' ? session : undefined,
    sender: typeof sender === 'number' ? sender : undefined,
    body,
  };
}

/** The id of a new session or handle, or undefined if the answer holds none. */
export function idIn(message: JanusMessage): number | undefined {
  const { id } = objectOf(message.body['data']);
  return typeof id === 'number' ? id : undefined;
}

/** The VideoRoom plug-in's data in an answer or event; empty if there is none. */
export function pluginData(message: JanusMessage): Readonly<Record<string, unknown>> {
  return objectOf(objectOf(message.body['plugindata'])['data']);
}

export function sdpIn(message: JanusMessage): string | undefined {
  const { sdp } = objectOf(message.body['jsep']);
  return typeof sdp === 'string' ? sdp : undefined;
}

/** The error in a message, from the core or the plug-in: Janus manual, "Error codes"; janus_videoroom.c. */
export function errorIn(message: JanusMessage): { code: number; reason: string } | undefined {
  const core = objectOf(message.body['error']);
  if (message.janus === 'error') return { code: Number(core['code'] ?? 0), reason: textOf(core['reason']) };
  const { error_code: code, error } = pluginData(message);
  return code === undefined ? undefined : { code: Number(code), reason: textOf(error) };
}

/** The list's items as objects; anything but an object becomes an empty one. Empty if `value` is not a list. */
export function objectsIn(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Error codes of Janus: of its core (src/apierror.h) and of its VideoRoom plug-in (janus_videoroom.c). */
export const JANUS = { noSuchRoom: 426, roomExists: 427, noSuchFeed: 428, sessionNotFound: 458 } as const;

const CODES_OF = {
  no_such_room: [JANUS.noSuchRoom],
  no_such_feed: [JANUS.noSuchFeed],
  unavailable: [JANUS.sessionNotFound],
  /** The id exists already. */
  feed_exists: [436],
  /** Join first, joined already, no such handle, wrong state of the peer connection. */
  closed: [424, 425, 459, 471],
  /** A type or text of SDP that Janus does not take, an answer without an offer. */
  invalid_sdp: [431, 437, 464, 465, 469],
} satisfies Partial<Record<MediaErrorCode, readonly number[]>>;
const MEANING = new Map(
  Object.entries(CODES_OF).flatMap(([meaning, codes]) => codes.map((code) => [code, meaning as MediaErrorCode])),
);

/** An error that Janus answered; `janusCode` is its number. The message quotes Janus, which names only ids. */
export class JanusError extends MediaError {
  constructor(
    request: string,
    readonly janusCode: number,
    reason: string,
  ) {
    super(MEANING.get(janusCode) ?? 'refused', `Janus refused "${request}" (${janusCode}: ${reason})`);
  }
}

export function isJanusError(error: unknown, ...codes: number[]): boolean {
  return error instanceof JanusError && codes.includes(error.janusCode);
}
