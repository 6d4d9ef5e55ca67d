import type { components } from './openapi.generated.js';

/** The codes of the API; docs/errors.md explains them. */
export type ApiErrorCode = components['schemas']['Error']['error']['code'];

/** The codes of this client, in addition to the API's. */
export type ClientErrorCode =
  /** The API was not reached, or the connection was lost; `cause` says how. */
  | 'CONNECTION_FAILED'
  /** No complete response within `timeoutMs`, or a clean-up did not end in time. */
  | 'TIMED_OUT'
  /** The response is not one of the API; a proxy may have sent it. */
  | 'INVALID_RESPONSE'
  /** The clean-up that `waitForOperation` waited for has failed. */
  | 'OPERATION_FAILED'
  /** The `handle` of `consumeEvents` has resolved without storing the cursor. */
  | 'CURSOR_NOT_STORED';

/** A later version of the API may have further codes. */
export type CallplaneErrorCode = ApiErrorCode | ClientErrorCode | (string & Record<never, never>);

/** One failure in a request. */
export interface ErrorDetail {
  /** Such as `body.name`, `path.roomId` or `query.limit`. */
  path: string;
  message: string;
}

export interface CallplaneErrorFacts {
  code: CallplaneErrorCode;
  /** Of the HTTP response; null if none arrived. */
  status?: number | null;
  requestId?: string | null;
  details?: readonly ErrorDetail[];
  retryAfterSeconds?: number | null;
  operationId?: string | null;
  cause?: unknown;
}

/** Every error of a call, except for wrong arguments (`TypeError`) and the reason of an aborted signal. */
export class CallplaneError extends Error {
  override readonly name = 'CallplaneError';
  readonly code: CallplaneErrorCode;
  /** The status of the HTTP response; null if none arrived. */
  readonly status: number | null;
  /** Finds the request in the log of the API; null if no response arrived. */
  readonly requestId: string | null;
  /** Every failure that belongs to a part of the request. */
  readonly details: readonly ErrorDetail[];
  /** When the API expects the next attempt; null if it did not say. */
  readonly retryAfterSeconds: number | null;
  /** The operation that was called, such as `createRoom`. */
  readonly operationId: string | null;

  constructor(message: string, facts: CallplaneErrorFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.status = facts.status ?? null;
    this.requestId = facts.requestId ?? null;
    this.details = facts.details ?? [];
    this.retryAfterSeconds = facts.retryAfterSeconds ?? null;
    this.operationId = facts.operationId ?? null;
  }
}

/**
 * Whether an error is one of this client, with one of the codes if any are given. Unlike `instanceof` it also holds if
 * an application loads the package twice, as ES module and as CommonJS.
 */
export function isCallplaneError(error: unknown, ...codes: CallplaneErrorCode[]): error is CallplaneError {
  if (!(error instanceof Error) || error.name !== 'CallplaneError') return false;
  return codes.length === 0 || codes.some((code) => code === (error as { code?: unknown }).code);
}
