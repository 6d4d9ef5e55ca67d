/** The one table of public errors: code → HTTP status and default message. docs/errors.md explains each. */
export const ERROR_TABLE = {
  VALIDATION_FAILED: { status: 400, message: 'The request is not valid; see details.' },
  MALFORMED_JSON: { status: 400, message: 'The request body is not valid JSON.' },
  UNAUTHENTICATED: {
    status: 401,
    message: 'Send a valid API key as "Authorization: Bearer <API_KEY>".',
  },
  INSUFFICIENT_SCOPE: { status: 403, message: 'The API key lacks the scope that this operation needs.' },
  ROOM_NOT_FOUND: { status: 404, message: 'No such room in this environment.' },
  PARTICIPANT_NOT_FOUND: { status: 404, message: 'No such participant in this room.' },
  SESSION_NOT_FOUND: { status: 404, message: 'No such active session in this room.' },
  WEBHOOK_NOT_FOUND: { status: 404, message: 'No such webhook endpoint in this environment.' },
  DELIVERY_NOT_FOUND: { status: 404, message: 'No such delivery of this webhook endpoint.' },
  RECOVERY_NOT_FOUND: { status: 404, message: 'No such recovery of this webhook endpoint.' },
  OPERATION_NOT_FOUND: { status: 404, message: 'No runtime operation exists for this resource.' },
  ROUTE_NOT_FOUND: { status: 404, message: 'No such route.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'This route does not take this method; see the Allow header.' },
  REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
  ROOM_ENDED: { status: 409, message: 'The room is ending or has ended.' },
  REPLAY_COUNT_MISMATCH: { status: 409, message: 'The delivery has another replay count; see details.' },
  DELIVERY_NOT_TERMINAL: {
    status: 409,
    message: 'The delivery is pending or delivering; only a finished one can be replayed.',
  },
  REPLAY_LIMIT_REACHED: { status: 409, message: 'The delivery has been replayed 100 times.' },
  WEBHOOK_DISABLED: { status: 409, message: 'The webhook endpoint is disabled.' },
  WEBHOOK_LIMIT_REACHED: { status: 409, message: 'The environment has 50 webhook endpoints already.' },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    message: 'A request with this Idempotency-Key is still under way; try again in a moment.',
  },
  PAYLOAD_TOO_LARGE: { status: 413, message: 'The request body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'Send the body as "Content-Type: application/json" in UTF-8.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, message: 'This Idempotency-Key was used with another request body.' },
  RATE_LIMITED: { status: 429, message: 'Too many requests with this API key; see Retry-After.' },
  INTERNAL: { status: 500, message: 'Something went wrong on our side; quote the requestId when you report it.' },
  UNAVAILABLE: { status: 503, message: 'The service cannot reach its database at the moment; try again shortly.' },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** Where a request is wrong: `path` is `body.name`, `path.roomId`, `query.limit` or `headers.idempotency-key`. */
export interface ErrorDetail {
  path: string;
  message: string;
}

/** An error that may be told to the caller. Whatever must not be told goes into `cause`, which only the log sees. */
export class PublicError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    options: {
      message?: string;
      details?: readonly ErrorDetail[];
      headers?: Readonly<Record<string, string>>;
      cause?: unknown;
    } = {},
  ) {
    super(options.message ?? ERROR_TABLE[code].message, 'cause' in options ? { cause: options.cause } : undefined);
    this.name = 'PublicError';
    this.code = code;
    this.details = options.details;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}
