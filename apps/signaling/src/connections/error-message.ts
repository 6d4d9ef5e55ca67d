import { boundDetails, boundMessage, type ErrorDetail } from '@callplane/core';
import type { ErrorCode, ServerMessage } from '@callplane/protocol';

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
