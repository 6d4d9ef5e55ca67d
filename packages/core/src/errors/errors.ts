/** The single table of public errors: code → HTTP status and default message. docs/errors.md explains each. */
export const ERROR_TABLE = {
  VALIDATION_FAILED: { status: 400, message: 'The request is invalid.' },
  MALFORMED_JSON: { status: 400, message: 'The request body is not valid JSON.' },
  UNAUTHENTICATED: {
    status: 401,
    message: 'Send a valid API key as "Authorization: Bearer <API_KEY>".',
  },
  INSUFFICIENT_SCOPE: { status: 403, message: 'The API key lacks the scope that this operation needs.' },
  PERMISSION_DENIED: { status: 403, message: 'The participant lacks the permission for a track of the offer.' },
  ORIGIN_NOT_ALLOWED: { status: 403, message: 'Connections from this origin are not allowed.' },
  CROSS_SITE_REQUEST: {
    status: 403,
    message: 'A request with a console session must come from the console. Other programs send an API key.',
  },
  ROOM_NOT_FOUND: { status: 404, message: 'Room not found in this environment.' },
  PARTICIPANT_NOT_FOUND: { status: 404, message: 'Participant not found in this room.' },
  SESSION_NOT_FOUND: { status: 404, message: 'Active session not found in this room.' },
  TRACK_NOT_FOUND: { status: 404, message: 'The participant publishes no such track at present.' },
  WEBHOOK_NOT_FOUND: { status: 404, message: 'Webhook endpoint not found in this environment.' },
  DELIVERY_NOT_FOUND: { status: 404, message: 'Delivery not found for this webhook endpoint.' },
  EVENT_NOT_FOUND: { status: 404, message: 'Event not found in this environment.' },
  RECOVERY_NOT_FOUND: { status: 404, message: 'Recovery not found for this webhook endpoint.' },
  OPERATION_NOT_FOUND: { status: 404, message: 'No runtime operation exists for this resource.' },
  RECORDING_NOT_FOUND: { status: 404, message: 'Recording or file not found in this environment.' },
  CONSOLE_SESSION_NOT_FOUND: { status: 404, message: 'The request has an API key, not a console session.' },
  ROUTE_NOT_FOUND: { status: 404, message: 'Route not found.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'The route does not support this method. See the Allow header.' },
  REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
  ROOM_ENDED: { status: 409, message: 'The room is ending or has ended.' },
  ROOM_FULL: { status: 409, message: 'The room has as many participants as it may have.' },
  SESSION_REPLACED: {
    status: 409,
    message: 'The participant has joined again meanwhile. The later session continues.',
  },
  RECORDING_ACTIVE: { status: 409, message: 'A recording is still running. Stop it first.' },
  ROOM_ENCRYPTED: { status: 409, message: 'The room is encrypted end to end. The server cannot record it.' },
  PARTICIPANT_REMOVED: { status: 409, message: 'The participant was removed from the room.' },
  PARTICIPANT_NOT_CONNECTED: { status: 409, message: 'The participant has no session in the room.' },
  PARTICIPANT_MOVED: { status: 409, message: 'The participant is moving, or has moved, to another room.' },
  ENCRYPTION_DIFFERS: { status: 409, message: 'One of the rooms is encrypted end to end, and the other one is not.' },
  NO_HANDLER: { status: 409, message: 'The client of the participant has no handler for this method.' },
  HANDLER_FAILED: { status: 409, message: 'The handler at the client of the participant has failed.' },
  RESPONSE_TOO_LARGE: { status: 409, message: 'The answer of the participant has more than 16 KiB.' },
  PARTICIPANT_TIMED_OUT: {
    status: 409,
    message: 'The participant is in the room, and did not answer in time. It may have handled the request.',
  },
  REPLAY_COUNT_MISMATCH: { status: 409, message: 'The replay count does not match. See details.' },
  DELIVERY_NOT_TERMINAL: {
    status: 409,
    message: 'The delivery is pending or delivering. Only finished deliveries can be replayed.',
  },
  DELIVERY_NOT_PENDING: {
    status: 409,
    message: 'The delivery is finished. A finished delivery can be replayed.',
  },
  DELIVERY_IN_FLIGHT: { status: 409, message: 'The delivery is being sent at this moment.' },
  EVENT_ERASED: {
    status: 409,
    message: 'Personal data of the event was erased. It cannot be sent again.',
  },
  REPLAY_LIMIT_REACHED: { status: 409, message: 'The delivery has been replayed 100 times.' },
  WEBHOOK_DISABLED: { status: 409, message: 'The webhook endpoint is disabled.' },
  SECRET_ROTATION_WAITS: {
    status: 409,
    message: 'A new secret of the endpoint waits for its activation. Activate or cancel that rotation first.',
  },
  NO_SECRET_ROTATION: { status: 409, message: 'No new secret of the endpoint waits for its activation.' },
  WEBHOOK_LIMIT_REACHED: { status: 409, message: 'The environment already has 50 webhook endpoints.' },
  CONSOLE_SESSION_LIMIT_REACHED: {
    status: 409,
    message: 'The environment has 100 open console sessions and links. End one with "rtc console sessions revoke".',
  },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    message: 'A request with this Idempotency-Key is in progress. Try again shortly.',
  },
  PRECONDITION_FAILED: {
    status: 412,
    message: 'The If-Match header does not have the ETag of the current ICE session.',
  },
  PAYLOAD_TOO_LARGE: { status: 413, message: 'The request body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'Send the body as "Content-Type: application/json" in UTF-8.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: 'This Idempotency-Key was used with a different request body.' },
  PRECONDITION_REQUIRED: {
    status: 428,
    message: 'Send the ETag of the ICE session as If-Match, or "*" to restart ICE.',
  },
  RATE_LIMITED: { status: 429, message: 'Too many requests. See Retry-After.' },
  HEADERS_TOO_LARGE: { status: 431, message: 'The request headers are too large.' },
  INTERNAL: { status: 500, message: 'Internal error. Quote the requestId when you report it.' },
  RECORDING_UNAVAILABLE: {
    status: 503,
    message: 'The deployment cannot record at present: it lacks a store, a recorder, or an agent that records.',
  },
  UNAVAILABLE: { status: 503, message: 'The database is temporarily unavailable. Try again shortly.' },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** `path` is `body.name`, `path.roomId`, `query.limit` or `headers.idempotency-key`. */
export interface ErrorDetail {
  path: string;
  message: string;
}

/** Details that the caller must not see go into `cause`, which only the log contains. */
export class PublicError extends Error {
  readonly details: readonly ErrorDetail[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: ErrorCode,
    options: {
      message?: string;
      details?: readonly ErrorDetail[];
      headers?: Readonly<Record<string, string>>;
      cause?: unknown;
    } = {},
  ) {
    super(
      options.message ?? defaultMessage(code, options.details),
      'cause' in options ? { cause: options.cause } : undefined,
    );
    this.name = 'PublicError';
    this.details = options.details;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}

/** The caller may try again after some seconds. */
export function rateLimited(message: string, retryAfterSeconds = 1): PublicError {
  return new PublicError('RATE_LIMITED', { message, headers: { 'retry-after': String(retryAfterSeconds) } });
}

/** An invalid request is told its first failure, because many clients show nothing but the message. */
function defaultMessage(code: ErrorCode, details: readonly ErrorDetail[] = []): string {
  const [first] = details;
  if (code !== 'VALIDATION_FAILED' || first === undefined) return ERROR_TABLE[code].message;
  const others = details.length === 1 ? '' : ` (and ${details.length - 1} more, see details)`;
  return `${first.path} ${first.message}${others}`;
}

/** Maximum number of details of one error. A hostile request could cause one for each of its bytes. */
export const ERROR_DETAILS_MAX = 20;
export const ERROR_PATH_CHARACTERS_MAX = 200;
const ERROR_MESSAGE_CHARACTERS_MAX = 400;
/** Maximum size of one error as sent, envelope included. */
export const ERROR_BODY_BYTES_MAX = 16 * 1024;
/** Reserved for the rest of an error: code, message and request id, whose characters take up to six bytes each. */
const ENVELOPE_BYTES_MAX = 4 * 1024;

/** Every error response of the API and every error frame of the gateway uses this function. */
export function boundDetails(details: readonly ErrorDetail[]): ErrorDetail[] {
  const bounded: ErrorDetail[] = [];
  let bytes = 0;
  for (const { path, message } of details.slice(0, ERROR_DETAILS_MAX)) {
    const detail = {
      path: cutText(path, ERROR_PATH_CHARACTERS_MAX),
      message: cutText(message, ERROR_MESSAGE_CHARACTERS_MAX),
    };
    // Control characters and lone surrogates take six bytes each in JSON, so a limit on characters is not enough.
    bytes += Buffer.byteLength(JSON.stringify(detail)) + 1;
    if (bytes > ERROR_BODY_BYTES_MAX - ENVELOPE_BYTES_MAX) break;
    bounded.push(detail);
  }
  return bounded;
}

export function boundMessage(message: string): string {
  return cutText(message, ERROR_MESSAGE_CHARACTERS_MAX);
}

/** A cut text ends in an ellipsis, and no surrogate pair is split. */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  const last = text.charCodeAt(end - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)}…`;
}

/** The keys and indexes of a JSON pointer, the form in which Ajv reports the location of a value: `/permissions/0`. */
export function pointerSegments(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment));
}

/** Such as `body.tracks[0].layer`. Bounded while it grows, because a key may be as long as the body. */
export function formatPath(root: string, segments: readonly (string | number)[]): string {
  let path = root;
  for (const segment of segments) {
    if (path.length > ERROR_PATH_CHARACTERS_MAX) break;
    const text = typeof segment === 'number' ? `[${segment}]` : segment.slice(0, ERROR_PATH_CHARACTERS_MAX + 1);
    path += typeof segment === 'number' || path === '' ? text : `.${text}`;
  }
  return cutText(path, ERROR_PATH_CHARACTERS_MAX);
}
