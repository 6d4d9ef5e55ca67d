import {
  ERROR_TABLE,
  PublicError,
  boundDetails,
  boundMessage,
  type ErrorCode,
  type ErrorDetail,
} from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { OverloadedError } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';
import { send } from './respond.js';

/** `Retry-After` in seconds while PostgreSQL is unavailable. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2;
/** `Retry-After` in seconds while too many requests wait for their statements. */
const OVERLOADED_RETRY_AFTER_SECONDS = 1;

/** The body of every error. Messages and details are cut so that it has at most 16 KiB. */
function errorBody(
  code: ErrorCode,
  requestId: string,
  message: string = ERROR_TABLE[code].message,
  details?: readonly ErrorDetail[],
): { error: { code: string; message: string; requestId: string; details?: readonly ErrorDetail[] } } {
  return {
    error: {
      code,
      message: boundMessage(message),
      requestId,
      ...(details === undefined ? {} : { details: boundDetails(details) }),
    },
  };
}

/** Converts any thrown value to an error that is safe to send. The cause goes to the log only. */
function toPublicError(error: unknown): PublicError {
  if (error instanceof PublicError) return error;
  if (isDatabaseUnavailable(error)) {
    return new PublicError('UNAVAILABLE', {
      cause: error,
      headers: { 'retry-after': String(UNAVAILABLE_RETRY_AFTER_SECONDS) },
    });
  }
  if (error instanceof OverloadedError) {
    return new PublicError('UNAVAILABLE', {
      message: 'Too many requests wait. Try again shortly.',
      cause: error,
      headers: { 'retry-after': String(OVERLOADED_RETRY_AFTER_SECONDS) },
    });
  }
  return new PublicError('INTERNAL', { cause: error });
}

/** The last middleware. Answers with the error body, whichever layer threw. */
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
