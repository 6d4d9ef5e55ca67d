import { ERROR_TABLE, PublicError, type ErrorCode, type ErrorDetail } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';
import { send } from './respond.js';

/** Seconds after which a caller should try again when PostgreSQL is away. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2;

/** The one shape of every error. */
export function errorBody(
  code: ErrorCode,
  requestId: string,
  message: string = ERROR_TABLE[code].message,
  details?: readonly ErrorDetail[],
): { error: { code: string; message: string; requestId: string; details?: readonly ErrorDetail[] } } {
  return { error: { code, message, requestId, ...(details === undefined ? {} : { details }) } };
}

/** Whatever was thrown, as an error that may be told. The cause stays in the log. */
export function toPublicError(error: unknown): PublicError {
  if (error instanceof PublicError) return error;
  if (isDatabaseUnavailable(error)) {
    return new PublicError('UNAVAILABLE', {
      cause: error,
      headers: { 'retry-after': String(UNAVAILABLE_RETRY_AFTER_SECONDS) },
    });
  }
  return new PublicError('INTERNAL', { cause: error });
}

/** The last middleware: answers with the error shape, whichever layer threw. */
export function errorHandler(error: unknown, _request: Request, response: Response, _next: NextFunction): void {
  const context = contextOf(response);
  const publicError = toPublicError(error);
  context.errorCode = publicError.code;
  if (publicError.cause !== undefined) context.cause = publicError.cause;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { code, status, message, details, headers } = publicError;
  send(response, status, JSON.stringify(errorBody(code, context.requestId, message, details)), headers);
}
