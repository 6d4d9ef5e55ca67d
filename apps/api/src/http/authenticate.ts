import { addressKey, hashApiKey, parseApiKey, PublicError, type Caller, type KeyedPace } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { contextOf } from './request-context.js';
import type { IsUnlimited } from './request-kind.js';
import type { RequestMetrics } from './request-metrics.js';

/** Looks up the caller of an API key. */
export interface CallerDirectory {
  /** Whether this process has found the key in the database before. Includes revoked and expired keys. */
  hasSeen(keyHash: Buffer): boolean;
  /**
   * Returns null if the key is unknown, revoked or expired.
   * @param inBatch the look-up may wait for other look-ups and share one statement with them.
   */
  find(keyHash: Buffer, options?: { inBatch?: boolean }): Promise<Caller | null>;
}

/** Options of every 401. */
export const UNAUTHENTICATED = { headers: { 'www-authenticate': 'Bearer' } } as const;

/**
 * Rejects requests without a valid API key.
 *
 * Requests with keys that do not exist are rate limited per client address. Many clients may share one address, so the
 * limit itself never rejects a valid key: `CallerCache` then still looks up the keys that it has not seen, but many of
 * them with one statement. It refuses such a key as `UNAVAILABLE` while too many of these look-ups wait.
 */
export function authenticate(
  directory: CallerDirectory,
  unknownKeyPace: KeyedPace,
  metrics: Pick<RequestMetrics, 'unauthenticated'>,
  isUnlimited: IsUnlimited,
) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const key = bearerToken(request.headers.authorization);
    // The checksum in the key rejects typos without a look-up.
    if (key === null || parseApiKey(key) === null) {
      metrics.unauthenticated('no_key');
      throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
    }
    const keyHash = hashApiKey(key);
    const context = contextOf(response);
    const waitMs = directory.hasSeen(keyHash) ? 0 : unknownKeyPace.waitMs(addressKey(context.ip), performance.now());
    const caller = await directory.find(keyHash, { inBatch: waitMs > 0 });
    if (caller !== null) {
      context.caller = caller;
      context.isKeyValid = async () => (await directory.find(keyHash)) !== null;
      next();
      return;
    }
    const isUnknown = !directory.hasSeen(keyHash);
    const isLimited = isUnknown && waitMs > 0;
    metrics.unauthenticated(isLimited ? 'too_many' : 'invalid_key');
    if (isLimited && !isUnlimited(request)) {
      throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) } });
    }
    if (isUnknown && !isLimited) unknownKeyPace.charge(addressKey(context.ip), performance.now());
    throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
  };
}

function bearerToken(header: string | undefined): string | null {
  return /^Bearer +([^\s]+)$/i.exec(header ?? '')?.[1] ?? null;
}
