import { boundDetails, boundMessage, PublicError } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { OverloadedError } from '@callplane/runtime';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { contextOf } from './request-context.js';
import { noRouteMessages } from './no-route.js';
import { send } from './respond.js';
import type { Route } from './route.js';

/** `Retry-After` in seconds while PostgreSQL is unavailable. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2;
/** `Retry-After` in seconds while too many requests wait for their statements. */
const OVERLOADED_RETRY_AFTER_SECONDS = 1;

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

/** Refuses every request. Express runs it after the handlers of these methods. */
export function onlyMethods(methods: readonly string[]): RequestHandler {
  const allow = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');
  return () => {
    throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow } });
  };
}

/** The last middleware. Answers with the error body, whichever layer threw. */
export function errorHandler(routes: readonly Pick<Route, 'method' | 'path'>[]) {
  const messageOf = noRouteMessages(routes);
  return (thrown: unknown, request: Request, response: Response, _next: NextFunction): void => {
    const context = contextOf(response);
    const publicError = toPublicError(thrown);
    context.errorCode = publicError.code;
    if (publicError.cause !== undefined) context.cause = publicError.cause;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { code, status, details, headers } = publicError;
    // Messages and details are cut so that the body has at most 16 KiB.
    const error = {
      code,
      message: boundMessage(messageOf(publicError, request)),
      requestId: context.requestId,
      ...(details === undefined ? {} : { details: boundDetails(details) }),
    };
    send(response, status, JSON.stringify({ error }), headers);
  };
}
