import type { CloseReason, ErrorCode } from './protocol.generated.js';

/** What the SDK itself can say, beside what the gateway says. */
export type ClientErrorCode =
  /** An option or argument makes no sense; trying again does not help. */
  | 'invalid_argument'
  /** No gateway was reached within `connectTimeoutMs`. */
  | 'unreachable'
  /** The connection was lost, and with it the answer; whether it was done is not known. */
  | 'connection_lost'
  /** No answer in time. */
  | 'no_answer'
  /** The call is over. */
  | 'closed'
  /** The browser gave no microphone, camera or screen; `cause` says why. */
  | 'device_unavailable';

export type CallplaneErrorCode = ErrorCode | CloseReason | ClientErrorCode;

/** Every error that this SDK throws. */
export class CallplaneError extends Error {
  override readonly name = 'CallplaneError';

  constructor(
    readonly code: CallplaneErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Whether the same may well succeed a little later. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof CallplaneError &&
    ['media_unavailable', 'unavailable', 'conflict', 'rate_limited', 'no_answer'].includes(error.code)
  );
}

export function asCallplaneError(error: unknown): CallplaneError {
  if (error instanceof CallplaneError) return error;
  return new CallplaneError('invalid_sdp', error instanceof Error ? error.message : String(error), { cause: error });
}
