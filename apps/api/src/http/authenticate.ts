import { addressKey, hashApiKey, isLoginCode, parseApiKey, PublicError, type KeyedPace } from '@callplane/core';
import type { NextFunction, Request, Response } from 'express';
import { consoleSecretOf, type ConsoleSessions, refuseCrossSite } from '../console/console-sessions.js';
import { contextOf, type CallerDirectory, type MatchesRoute } from './request-context.js';
import type { RequestMetrics } from './request-log.js';

export interface Directories {
  keys: CallerDirectory;
  /** The console; null if it is switched off. */
  console: { sessions: ConsoleSessions; links: CallerDirectory } | null;
}

/** Options of every 401. */
export const UNAUTHENTICATED = { headers: { 'www-authenticate': 'Bearer' } } as const;

/** Why a request has no caller, for people: the status and the code are the same for all. */
const WRONG_CREDENTIALS = {
  absent: 'The request has no API key. Send it as "Authorization: Bearer <API_KEY>".',
  malformed:
    'The Authorization header has no well-formed API key: send "Bearer " and a whole key, rtc_sk_… or rtc_pk_… with ' +
    '49 characters after it.',
  unknown: 'No such API key is valid here: it was revoked, has expired or is of another deployment.',
  session: 'The console session has ended. Sign in again.',
} as const;

const unauthenticated = (why: keyof typeof WRONG_CREDENTIALS) =>
  new PublicError('UNAUTHENTICATED', { ...UNAUTHENTICATED, message: WRONG_CREDENTIALS[why] });

/** The proof of a caller: an API key, the code of a link, or the cookie of a session. */
interface Credential {
  hash: Buffer;
  directory: CallerDirectory;
  /** The look-up that counts as a request of the caller. */
  find: CallerDirectory['find'];
}

/**
 * Rejects requests without a valid API key, and without a console session.
 *
 * Requests with keys that do not exist are rate limited per client address. Many clients may share one address, so the
 * limit itself never rejects a valid key: `CallerCache` then still looks up the keys that it has not seen, but many of
 * them with one statement. It refuses such a key as `UNAVAILABLE` while too many of these look-ups wait.
 */
export function authenticate(
  directories: Directories,
  unknownKeyPace: KeyedPace,
  metrics: Pick<RequestMetrics, 'unauthenticated'>,
  { isUnlimited, isSignIn }: { isUnlimited: MatchesRoute; isSignIn: MatchesRoute },
) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const credential = credentialOf(directories, request, isSignIn);
    if (credential === null) {
      metrics.unauthenticated('no_key');
      throw unauthenticated(request.headers.authorization === undefined ? 'absent' : 'malformed');
    }
    const { hash, directory } = credential;
    const context = contextOf(response);
    const waitMs = directory.hasSeen(hash) ? 0 : unknownKeyPace.waitMs(addressKey(context.ip), performance.now());
    const caller = await credential.find(hash, { inBatch: waitMs > 0 });
    if (caller !== null) {
      context.caller = caller;
      context.isKeyValid = async (options) => (await directory.find(hash, options)) !== null;
      if (caller.session !== undefined) refuseCrossSite(request);
      next();
      return;
    }
    const isUnknown = !directory.hasSeen(hash);
    const isLimited = isUnknown && waitMs > 0;
    metrics.unauthenticated(isLimited ? 'too_many' : 'invalid_key');
    if (isLimited && !isUnlimited(request)) {
      throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) } });
    }
    if (isUnknown && !isLimited) unknownKeyPace.charge(addressKey(context.ip), performance.now());
    throw unauthenticated(request.headers.authorization === undefined ? 'session' : 'unknown');
  };
}

/** The credential of a request; null if there is none in the right form. The header wins over the cookie. */
function credentialOf({ keys, console }: Directories, request: Request, isSignIn: MatchesRoute): Credential | null {
  const { authorization } = request.headers;
  // The checksum in a key, a code or a cookie rejects typos without a look-up.
  if (authorization !== undefined) {
    const key = bearerToken(authorization);
    if (key === null) return null;
    if (parseApiKey(key) !== null) return credential(key, keys);
    return console !== null && isSignIn(request) && isLoginCode(key) ? credential(key, console.links) : null;
  }
  const secret = console === null ? null : consoleSecretOf(request);
  if (secret === null || console === null) return null;
  const { sessions } = console;
  return { ...credential(secret, sessions), find: (hash, options) => sessions.findForRequest(hash, options) };
}

function credential(secret: string, directory: CallerDirectory): Credential {
  return { hash: hashApiKey(secret), directory, find: (hash, options) => directory.find(hash, options) };
}

function bearerToken(header: string): string | null {
  return /^Bearer +([^\s]+)$/i.exec(header)?.[1] ?? null;
}
