import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';

/** Answers under `/v1` hold tokens, credentials and private data: nothing on the way keeps them. */
export function noStore(_request: Request, response: Response, next: NextFunction): void {
  contextOf(response).headers['cache-control'] = 'no-store';
  next();
}

/**
 * A path with percent-escapes that stand for no text would make Express answer 400 before authorisation. Its percent
 * signs are escaped instead, so that it reaches validation as the text it is and is judged in its turn.
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
