import type { ErrorCode } from '@callplane/protocol';
import { ERROR_CODES } from '@callplane/protocol';

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
