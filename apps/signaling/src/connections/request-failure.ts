import type { ErrorCode } from '@callplane/protocol';
import { ERROR_CODES } from '@callplane/protocol';

/** A request that is refused; the connection stays. */
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
