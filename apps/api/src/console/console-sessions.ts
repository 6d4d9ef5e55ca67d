import {
  type Caller,
  type Clock,
  CONSOLE_SESSION_SECONDS_MAX,
  isConsoleSecret,
  parseUrl,
  PublicError,
} from '@callplane/core';
import { type Database, findConsoleLink, findConsoleSessionsByHash, touchConsoleSession } from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import { CallerCache } from '../http/caller-cache.js';
import { type CallerDirectory, isRead, type LookUpOptions } from '../http/request-context.js';

/** How old the noted time of the latest request may become, in milliseconds. */
const TOUCH_EVERY_MS = 60_000;
/** Sessions whose key and latest note this process remembers. */
const SESSIONS_MAX = 10_000;

/** Caches console sessions like API keys. They are looked up by the hash of their cookie. */
export class ConsoleSessions implements CallerDirectory {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #cache: CallerCache;
  /** The key behind each session that this process has read, by the hash of its cookie. */
  readonly #keyHashes = new LRUCache<string, string>({ max: SESSIONS_MAX });
  /** Time of the latest noted request, in milliseconds, by id. */
  readonly #touchedAtMs = new LRUCache<string, number>({ max: SESSIONS_MAX });

  constructor(database: Database, reads: Database, logger: Logger, clock: Clock) {
    this.#database = database;
    this.#logger = logger;
    this.#clock = clock;
    this.#cache = new CallerCache(async (hashes) => {
      const found = await findConsoleSessionsByHash(reads.sql, hashes);
      for (const [hash, { session, apiKeyHash, usedAt }] of found) {
        if (apiKeyHash !== null) this.#keyHashes.set(hash, apiKeyHash);
        this.#touchedAtMs.set(session.id, Math.max(usedAt.getTime(), this.#touchedAtMs.get(session.id) ?? 0));
      }
      return found;
    }, clock);
  }

  hasSeen(hash: Buffer): boolean {
    return this.#cache.hasSeen(hash);
  }

  find(hash: Buffer, options?: LookUpOptions): Promise<Caller | null> {
    return this.#cache.find(hash, options);
  }

  /** Looks the caller up for a request, which keeps the session from ending for want of requests. */
  async findForRequest(hash: Buffer, options?: LookUpOptions): Promise<Caller | null> {
    const caller = await this.#cache.find(hash, options);
    if (caller?.session !== undefined) this.#touch(caller, caller.session.id);
    return caller;
  }

  /** Drops a session after the notice of its end. */
  forget(hashHex: string): void {
    this.#cache.forget(hashHex);
  }

  /** Drops the sessions of a key after the notice of its revocation. */
  forgetKey(keyHashHex: string): void {
    for (const [hash, keyHash] of this.#keyHashes.entries()) if (keyHash === keyHashHex) this.#cache.forget(hash);
  }

  #touch(caller: Caller, id: string): void {
    const now = this.#clock.now();
    if (now.getTime() - (this.#touchedAtMs.get(id) ?? 0) < TOUCH_EVERY_MS) return;
    this.#touchedAtMs.set(id, now.getTime());
    // The request does not wait for it. The next request of the session after a minute tries again.
    touchConsoleSession(this.#database.prisma, caller, id, now).catch((error: unknown) =>
      this.#logger.warn('console session not noted as used', { error }),
    );
  }
}

/**
 * The callers of links. A code is looked up once and then used, so nothing is cached. A client address that sends too many unknown keys gets
 * 429 without a look-up.
 */
export function consoleLinks({ prisma }: Database, clock: Clock): CallerDirectory {
  return {
    hasSeen: () => false,
    find: async (codeHash, { inBatch = false } = {}) => {
      if (inBatch === true) return null;
      const link = await findConsoleLink(prisma, codeHash, clock.now());
      if (link === null) return null;
      const { id, projectId, environmentId } = link;
      return { projectId, environmentId, keyId: id, keyType: 'secret', scopes: [], loginCodeHash: codeHash };
    },
  };
}

/** Browsers accept a name with this prefix only over https, for exactly one host, and with `Path=/`. */
const SECURE_NAME = '__Host-callplane_session';
const PLAIN_NAME = 'callplane_session';
/** A request that changes something has this header. Forms and links cannot send it. */
const CSRF_HEADER = 'x-callplane-csrf';
/** The longest `Cookie` header that is read. The console sets one short cookie. */
const HEADER_MAX = 8192;

/** The secret of the session in the cookie of a request; null if there is none, or more than one. */
export function consoleSecretOf({ headers, secure }: Pick<Request, 'headers' | 'secure'>): string | null {
  const header = headers.cookie;
  if (header === undefined || header.length > HEADER_MAX) return null;
  const name = `${nameFor(secure)}=`;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(name))
    .map((pair) => pair.slice(name.length));
  // A sibling host could add a cookie of its own beside ours.
  const [value] = values;
  return value !== undefined && values.length === 1 && isConsoleSecret(value) ? value : null;
}

/** The `Set-Cookie` header for a new session, which lives for `seconds`. */
export function consoleCookie(secret: string, isSecure: boolean, seconds: number): string {
  return cookie(secret, isSecure, Math.min(seconds, CONSOLE_SESSION_SECONDS_MAX));
}

/** The `Set-Cookie` header that deletes the cookie. */
export function noConsoleCookie(isSecure: boolean): string {
  return cookie('', isSecure, 0);
}

function cookie(value: string, isSecure: boolean, seconds: number): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict', ...(isSecure ? ['Secure'] : [])];
  return [`${nameFor(isSecure)}=${value}`, ...attributes].join('; ');
}

function nameFor(isSecure: boolean): string {
  return isSecure ? SECURE_NAME : PLAIN_NAME;
}

/**
 * Refuses a request with a cookie that a page of another origin has caused. `SameSite=Strict` already keeps the cookie
 * out of requests of other sites; these checks also cover other hosts and ports of the same site.
 * @throws PublicError CROSS_SITE_REQUEST
 */
export function refuseCrossSite(request: Pick<Request, 'method' | 'headers' | 'secure'>): void {
  const { origin, host } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const isFromHere = site === undefined || site === 'same-origin' || (site === 'none' && isRead(request));
  const isOwnOrigin = origin === undefined ? isRead(request) : isOriginOf(origin, host, request.secure);
  const isMarked = isRead(request) || request.headers[CSRF_HEADER] === '1';
  if (!isFromHere || !isOwnOrigin || !isMarked) throw new PublicError('CROSS_SITE_REQUEST');
}

function isOriginOf(origin: string, host: string | undefined, isSecure: boolean): boolean {
  const from = parseUrl(origin);
  if (from === null || host === undefined || (isSecure && from.protocol !== 'https:')) return false;
  // `Host` may name the default port, `Origin` never does.
  return parseUrl(`${from.protocol}//${host}`)?.host === from.host;
}
