import type { CloseReason, CreditMessage, ErrorCode, ReplyMessage } from './protocol.generated.js';

/** The SDK's own error codes, in addition to the gateway's. */
export type ClientErrorCode =
  /** An option or argument is invalid; a retry does not help. `details` names it. */
  | 'invalid_argument'
  /** The track is already published. Replace its media, switch its device, or unpublish it first. */
  | 'already_published'
  /** No further track fits into the session. Unpublish one first. */
  | 'too_many_tracks'
  /** No gateway was reached within `connectTimeoutMs`. The message names the URL and the likely cause. */
  | 'unreachable'
  /** The connection was lost before the answer came; the request may or may not have been carried out. */
  | 'connection_lost'
  /** No answer in time. */
  | 'no_answer'
  /** The `signal` was aborted, or a publication was cancelled before it was complete; `cause` is the reason. */
  | 'aborted'
  /** The call is over. */
  | 'closed'
  /** The user, the browser or the system does not allow the device or the screen. */
  | 'device_permission_denied'
  /** There is no such device. */
  | 'device_not_found'
  /** The device exists and cannot be opened; usually another program uses it. */
  | 'device_in_use'
  /** The browser gave no device for another reason; `cause` says why. */
  | 'device_unavailable'
  /** The processor of a track failed or is too slow. The track is sent unprocessed; `cause` says why. */
  | 'processor_failed'
  /** The browser plays no sound before a gesture of the user. Call `startAudio()` in a click handler. */
  | 'audio_blocked'
  /** This browser lacks what is needed, or the page is not served over HTTPS. */
  | 'unsupported'
  /** The room takes only encrypted media: pass `encryption` to `connect()`. */
  | 'encryption_required'
  /** `encryption` was passed, but the server says that the room is not encrypted. */
  | 'room_not_encrypted'
  /** The participant has left, or is not in the room. It may have handled the request. */
  | 'recipient_gone'
  /** The participant did not answer a request in time. */
  | 'recipient_timeout'
  /** The participant has answered in a way that this participant cannot decrypt. */
  | 'undecryptable'
  /** The sender of a stream has given it up. */
  | 'stream_aborted'
  /** The sender of a stream has left, or is silent. */
  | 'sender_gone'
  /** Something unexpected failed in the SDK or the browser; `cause` says what. */
  | 'internal';

/** The last kind comes from the participant that a request or a stream was sent to. */
export type CallplaneErrorCode =
  | ErrorCode
  | CloseReason
  | ClientErrorCode
  | NonNullable<ReplyMessage['failure'] | CreditMessage['failure']>;

/** One failure in an argument or request. */
export interface ErrorDetail {
  /** Where: the name of an option, or a path in the request such as `/tracks/0/trackId`. */
  path: string;
  message: string;
}

/** Every error that this SDK throws. */
export class CallplaneError extends Error {
  override readonly name = 'CallplaneError';
  /** What exactly is wrong, if the gateway or the SDK knows more than the message says. */
  readonly details: readonly ErrorDetail[];

  constructor(
    readonly code: CallplaneErrorCode,
    message: string,
    { details = [], ...options }: ErrorOptions & { details?: readonly ErrorDetail[] } = {},
  ) {
    super(message, options);
    this.details = details;
  }
}

export function hasCode(error: unknown, ...codes: CallplaneErrorCode[]): error is CallplaneError {
  return error instanceof CallplaneError && codes.includes(error.code);
}

/** Whether a retry a little later may succeed. */
export function isPassing(error: unknown): boolean {
  return hasCode(error, 'media_unavailable', 'unavailable', 'conflict', 'rate_limited', 'no_answer');
}

/** An error of any kind as a `CallplaneError`. An error without a code of its own is unexpected: `internal`. */
export function asCallplaneError(
  error: unknown,
  code: Extract<CallplaneErrorCode, 'internal' | 'invalid_sdp'> = 'internal',
): CallplaneError {
  if (error instanceof CallplaneError) return error;
  return new CallplaneError(code, error instanceof Error ? error.message : String(error), { cause: error });
}

export function invalidArgument(path: string, message: string): CallplaneError {
  return new CallplaneError('invalid_argument', `\`${path}\` ${message}`, { details: [{ path, message }] });
}

/** @throws CallplaneError `permission_denied`, which says where to add the permission. */
export function assertPermitted(permissions: readonly string[], needed: string): void {
  if (permissions.includes(needed)) return;
  throw new CallplaneError(
    'permission_denied',
    `The permission ${needed} is missing. Your backend adds it to \`permissions\` of POST /v1/rooms/{roomId}/tokens.`,
  );
}

/** An error of the SDK as the signal's reason stands for itself. */
export function abortedError({ reason }: AbortSignal): CallplaneError {
  return reason instanceof CallplaneError
    ? reason
    : new CallplaneError('aborted', 'The signal was aborted.', { cause: reason });
}

export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedError(signal);
}

/** Rejects as soon as the signal is aborted. What the promise does afterwards is dropped. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortedError(signal));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
