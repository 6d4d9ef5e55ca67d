import { PublicError } from '@callplane/core';
import { hostProblem } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';

/**
 * The target of a request in the form that Express understands: a path that begins with a slash, with an optional
 * query. Express answers a target in which it finds no path with a page of its own, and skips every middleware: the
 * caller gets no error body, and the request has no log line and counts in no metric.
 */
export function originForm(target: string): string {
  const origin = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const path = origin.startsWith('/') ? origin : `/${origin}`;
  // A valid target has none of these characters. Express would give one that has them to Node's old parser of URLs,
  // which takes backslashes for slashes, and finds no path in some texts.
  return path.replace(/[\s#]/g, encodeURIComponent);
}

/** Forbids caching of answers under `/v1`: they contain tokens, credentials and private data. */
export function noStore(_request: Request, response: Response, next: NextFunction): void {
  contextOf(response).headers['cache-control'] = 'no-store';
  next();
}

/** Rejects a request whose `Host` is missing, repeated or malformed. Runs before all other checks of the request. */
export function requireOneHost(request: Request, _response: Response, next: NextFunction): void {
  const message = hostProblem(request);
  if (message === null) next();
  else {
    throw new PublicError('VALIDATION_FAILED', {
      details: [{ path: 'headers.host', message }],
      headers: { connection: 'close' },
    });
  }
}

/**
 * Escapes the percent signs of a path that is not valid percent-encoded UTF-8. Without this, Express would answer 400
 * before authorisation. The escaped path reaches validation as plain text and is rejected there.
 */
export function rewriteUndecodablePath(request: Request, _response: Response, next: NextFunction): void {
  const end = request.url.indexOf('?');
  const path = end === -1 ? request.url : request.url.slice(0, end);
  if (path.includes('%') && !isDecodable(path)) {
    request.url = path.replaceAll('%', '%25') + (end === -1 ? '' : request.url.slice(end));
  }
  next();
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
