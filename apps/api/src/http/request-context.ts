import { newId, parseTraceparent, REQUEST_ID_PATTERN, type Caller } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';

/** What middleware learns of a request, for the handlers and for the one log line at its end. */
export interface RequestContext {
  readonly requestId: string;
  /** W3C Trace Context, if a well-formed one came with the request. */
  readonly traceparent: string | null;
  readonly startedAtMs: number;
  caller: Caller | null;
  /** Route pattern, once one matched. */
  route: string | null;
  errorCode: string | null;
  /** What went wrong on our side: logged, never sent. */
  cause: unknown;
  readonly logFields: Record<string, unknown>;
  /** Of the answer; its head is written from them in one go (respond.ts). */
  readonly headers: Record<string, string>;
}

/**
 * Gives the request its id (a well-formed incoming one is kept) and its context.
 * @param headers of every answer.
 */
export function requestContext(headers: Readonly<Record<string, string>>) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const incoming = request.headers['x-request-id'];
    const requestId = typeof incoming === 'string' && REQUEST_ID_PATTERN.test(incoming) ? incoming : newId('request');
    const context: RequestContext = {
      requestId,
      traceparent: parseTraceparent(request.headers.traceparent),
      startedAtMs: performance.now(),
      caller: null,
      route: null,
      errorCode: null,
      cause: null,
      logFields: {},
      headers: { ...headers, 'x-request-id': requestId },
    };
    response.locals['context'] = context;
    next();
  };
}

export function contextOf(response: Response): RequestContext {
  return response.locals['context'] as RequestContext;
}
