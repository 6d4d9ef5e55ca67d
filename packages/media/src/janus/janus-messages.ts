/** What Janus sends, as far as it was checked: everything else in a message is looked at where it is used. */
export interface JanusMessage {
  /** Its kind: `success`, `error`, `ack`, `event`, or a notice such as `hangup`. */
  readonly janus: string;
  readonly transaction: string | undefined;
  /** The handle that a notice is about. */
  readonly sender: number | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface SessionDescription {
  type: 'offer' | 'answer';
  sdp: string;
}

/** A message of Janus, or undefined for whatever is none. */
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
  const { transaction, sender } = body;
  return {
    janus: kind,
    transaction: typeof transaction === 'string' ? transaction : undefined,
    sender: typeof sender === 'number' ? sender : undefined,
    body,
  };
}

/** The id of a session or a handle that was made, or undefined when the answer holds none. */
export function idIn(message: JanusMessage): number | undefined {
  const { id } = objectOf(message.body['data']);
  return typeof id === 'number' ? id : undefined;
}

/** What the VideoRoom plug-in says in an answer or an event; empty when it says nothing. */
export function pluginData(message: JanusMessage): Readonly<Record<string, unknown>> {
  return objectOf(objectOf(message.body['plugindata'])['data']);
}

/** The session description that comes with a message. */
export function sdpIn(message: JanusMessage): string | undefined {
  const { sdp } = objectOf(message.body['jsep']);
  return typeof sdp === 'string' ? sdp : undefined;
}

/** The error in a message, of the core or of the plug-in: Janus manual, "Error codes"; janus_videoroom.c. */
export function errorIn(message: JanusMessage): { code: number; reason: string } | undefined {
  const core = objectOf(message.body['error']);
  if (message.janus === 'error') return { code: Number(core['code'] ?? 0), reason: textOf(core['reason']) };
  const { error_code: code, error } = pluginData(message);
  return code === undefined ? undefined : { code: Number(code), reason: textOf(error) };
}

/** The objects in a list; a list that is none, or holds something else, has fewer. */
export function objectsIn(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
