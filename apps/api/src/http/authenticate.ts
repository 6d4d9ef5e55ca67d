import { hashApiKey, parseApiKey, PublicError, type Caller } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';

/** Finds who a key belongs to; null when it is unknown, revoked or expired. */
export interface CallerDirectory {
  find(keyHash: Buffer): Promise<Caller | null>;
}

const UNAUTHENTICATED = { headers: { 'www-authenticate': 'Bearer' } } as const;

/** Lets through requests with a valid API key. */
export function authenticate(directory: CallerDirectory) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const key = bearerToken(request.headers.authorization);
    // The checksum refuses typos without a look-up.
    if (key === null || parseApiKey(key) === null) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
    const caller = await directory.find(hashApiKey(key));
    if (caller === null) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
    contextOf(response).caller = caller;
    next();
  };
}

function bearerToken(header: string | undefined): string | null {
  return /^Bearer +([^\s]+)$/i.exec(header ?? '')?.[1] ?? null;
}
