import { newId, REQUEST_ID_PATTERN, type Caller } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';

/** What middleware learns of a request, for the handlers and for the one log line at its end. */
export interface RequestContext {
  readonly requestId: string;
  readonly startedAt: bigint;
  caller: Caller | null;
  /** Route pattern, once one matched. */
  route: string | null;
  errorCode: string | null;
  /** What went wrong on our side: logged, never sent. */
  cause: unknown;
  readonly logFields: Record<string, unknown>;
}

/** Gives the request its id (a well-formed incoming one is kept) and its context. */
export function requestContext(request: Request, response: Response, next: NextFunction): void {
  const incoming = request.headers['x-request-id'];
  const requestId = typeof incoming === 'string' && REQUEST_ID_PATTERN.test(incoming) ? incoming : newId('request');
  response.setHeader('x-request-id', requestId);
  const context: RequestContext = {
    requestId,
    startedAt: process.hrtime.bigint(),
    caller: null,
    route: null,
    errorCode: null,
    cause: null,
    logFields: {},
  };
  response.locals['context'] = context;
  next();
}

export function contextOf(response: Response): RequestContext {
  return response.locals['context'] as RequestContext;
}
