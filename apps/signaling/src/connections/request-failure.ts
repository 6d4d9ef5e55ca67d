import { boundDetails, boundMessage, type ErrorDetail } from '@callplane/core';
import { ERROR_CODES, type ErrorCode, type ServerMessage } from '@callplane/protocol';

/** Refuses a request. The connection stays open. */
export class RequestFailure extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string = ERROR_CODES[code],
    readonly details?: { path: string; message: string }[],
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'RequestFailure';
  }
}

/** Builds the answer to a refused request. It has at most 16 KiB, whatever the details hold. */
export function errorMessage(
  id: string | undefined,
  code: ErrorCode,
  message: string,
  details?: readonly ErrorDetail[],
): ServerMessage {
  return {
    type: 'error',
    ...(id === undefined ? {} : { replyTo: id }),
    code,
    message: boundMessage(message),
    ...(details === undefined ? {} : { details: boundDetails(details) }),
  };
}
