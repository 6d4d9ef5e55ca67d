import { setTimeout } from 'node:timers/promises';
import {
  addressKey,
  hashApiKeyHex,
  isLoginCode,
  keyProblem,
  parseApiKey,
  PublicError,
  type Caller,
  type Clock,
  type KeyedPace,
  mayUse,
  scopeFailure,
  type Scope,
} from '@callplane/core';
import { Batches, ONE_QUEUE } from '@callplane/runtime';
import type { Request, RequestHandler } from 'express';
import { LRUCache } from 'lru-cache';
import { consoleSecretOf, refuseCrossSite } from '../console/console-cookie.js';
import { contextOf, type CallerDirectory, type LookUpOptions, type RequestMetrics } from './request-context.js';

export interface Directories {
  keys: CallerDirectory;
  /** The console; null if it is switched off. */
  console: { sessions: CallerDirectory; links: CallerDirectory } | null;
}

export const UNAUTHENTICATED = { headers: { 'www-authenticate': 'Bearer' } } as const;

/** Why a request has no caller, for people: the status and the code are the same for all. */
const WRONG_CREDENTIALS = {
  absent: 'The request has no API key. Send it as "Authorization: Bearer <API_KEY>".',
  scheme: 'The Authorization header has no API key. Send "Authorization: Bearer <API_KEY>".',
  unknown: 'No such API key is valid here: it was revoked, has expired or is of another deployment.',
  session: 'The console session has ended. Sign in again.',
} as const;

const unauthenticated = (message: string) => new PublicError('UNAUTHENTICATED', { ...UNAUTHENTICATED, message });

/** Why a request has no credential in the right form. */
function formFailure({ authorization }: Request['headers']): string {
  if (authorization === undefined) return WRONG_CREDENTIALS.absent;
  const key = bearerToken(authorization);
  return key === null ? WRONG_CREDENTIALS.scheme : `The API key is not well-formed: ${keyProblem(key)}.`;
}

/** The proof of a caller: an API key, the code of a link, or the cookie of a session. */
interface Credential {
  secret: string;
  directory: CallerDirectory;
}

export interface AuthenticateOptions {
  /** Whether the code of a login link is accepted in place of an API key. */
  acceptsLoginCode?: boolean;
  /** Whether too many unknown keys get 429. Otherwise they get 401, like a single one. */
  limitsUnknownKeys?: boolean;
}

/**
 * Rejects requests without a valid API key, and without a console session. A request with a known caller passes.
 *
 * Requests with keys that do not exist are rate limited per client address. Many clients may share one address, so the
 * limit itself never rejects a valid key: `CallerCache` then still looks up the keys that it has not seen, but many of
 * them with one statement. It refuses such a key as `UNAVAILABLE` while too many of these look-ups wait.
 */
export function authenticate(
  directories: Directories,
  unknownKeyPace: KeyedPace,
  metrics: Pick<RequestMetrics, 'unauthenticated'>,
  { acceptsLoginCode = false, limitsUnknownKeys = true }: AuthenticateOptions = {},
): RequestHandler {
  return async (request, response, next) => {
    const context = contextOf(response);
    if (context.caller !== null) {
      next();
      return;
    }
    const credential = credentialOf(directories, request, acceptsLoginCode);
    if (credential === null) {
      metrics.unauthenticated('no_key');
      throw unauthenticated(formFailure(request.headers));
    }
    const { secret, directory } = credential;
    const hash = hashApiKeyHex(secret);
    const waitMs = directory.hasSeen(hash) ? 0 : unknownKeyPace.waitMs(addressKey(context.ip), performance.now());
    const caller = await directory.find(hash, { inBatch: waitMs > 0, isRequest: true });
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
    if (isLimited && limitsUnknownKeys) {
      throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) } });
    }
    if (isUnknown && !isLimited) unknownKeyPace.charge(addressKey(context.ip), performance.now());
    throw unauthenticated(WRONG_CREDENTIALS[request.headers.authorization === undefined ? 'session' : 'unknown']);
  };
}

/** The credential of a request; null if there is none in the right form. The header wins over the cookie. */
function credentialOf({ keys, console }: Directories, request: Request, acceptsLoginCode: boolean): Credential | null {
  const { authorization } = request.headers;
  // The checksum in a key, a code or a cookie rejects typos without a look-up.
  if (authorization !== undefined) {
    const key = bearerToken(authorization);
    if (key === null) return null;
    if (parseApiKey(key) !== null) return { secret: key, directory: keys };
    const isLogin = console !== null && acceptsLoginCode && isLoginCode(key);
    return isLogin ? { secret: key, directory: console.links } : null;
  }
  const secret = console === null ? null : consoleSecretOf(request);
  return secret === null || console === null ? null : { secret, directory: console.sessions };
}

function bearerToken(header: string): string | null {
  return /^Bearer +([^\s]+)$/i.exec(header)?.[1] ?? null;
}

export interface StoredKey extends Caller {
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

/**
 * How long a cached key stays valid, in milliseconds. Every instance must refuse a revoked key within 5 seconds, even
 * if the revocation notice is lost.
 */
const FRESH_MS = 4000;
/**
 * How long an unknown key stays cached, in milliseconds. A key that is created meanwhile works after at most this time.
 */
const UNKNOWN_MS = 1000;
/**
 * Size of each of two caches: one for existing keys and one for unknown keys. They are separate so that a flood of
 * unknown keys evicts no existing key.
 */
const KEYS_MAX = 10_000;
/**
 * Keys in one batched look-up, and keys that wait for the next one. Look-ups are batched for client addresses that have
 * sent too many unknown keys.
 */
const BATCH_MAX = 500;
const BATCH_EVERY_MS = 100;

interface Entry {
  readonly key: StoredKey | null;
  /** When the query began. The result may lack a revocation that happened after this time. */
  readonly readAtMs: number;
}

/** Caches API keys so that most requests need no database query. */
export class CallerCache implements CallerDirectory {
  readonly #known = new LRUCache<string, Entry>({ max: KEYS_MAX });
  readonly #unknown = new LRUCache<string, Entry>({ max: KEYS_MAX });
  readonly #loading = new Map<string, Promise<Entry>>();
  readonly #batches: Batches<string, StoredKey | null>;

  /** @param load finds keys by their hexadecimal hashes. The result omits unknown keys. */
  constructor(
    private readonly load: (keyHashes: readonly string[]) => Promise<ReadonlyMap<string, StoredKey>>,
    private readonly clock: Clock,
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {
    this.#batches = new Batches({
      run: async (_key, hashes) => {
        const keys = await load(hashes);
        return hashes.map((hash) => keys.get(hash) ?? null);
      },
      sizeMax: BATCH_MAX,
      waitingMax: { all: BATCH_MAX, perKey: BATCH_MAX },
      limit: async (work) => {
        await setTimeout(BATCH_EVERY_MS);
        return work();
      },
    });
  }

  hasSeen(id: string): boolean {
    return this.#known.has(id);
  }

  async find(id: string, { inBatch = false }: LookUpOptions = {}): Promise<Caller | null> {
    const known = this.#known.get(id);
    const unknown = this.#unknown.get(id);
    let entry: Entry;
    if (known !== undefined && this.#isFresh(known, FRESH_MS)) entry = known;
    else if (unknown !== undefined && this.#isFresh(unknown, UNKNOWN_MS)) entry = unknown;
    else entry = await this.#read(id, inBatch);
    const { key } = entry;
    if (key === null || key.revokedAt !== null) return null;
    return key.expiresAt === null || key.expiresAt > this.clock.now() ? key : null;
  }

  forget(keyHashHex: string): void {
    this.#known.delete(keyHashHex);
    this.#loading.delete(keyHashHex);
  }

  #isFresh({ readAtMs }: Entry, freshMs: number): boolean {
    return this.monotonicMs() - readAtMs <= freshMs;
  }

  /** Runs at most one query per key at a time. All requests for that key share its result. */
  #read(id: string, inBatch: LookUpOptions['inBatch']): Promise<Entry> {
    const underWay = this.#loading.get(id);
    if (underWay !== undefined) return underWay;
    const readAtMs = this.monotonicMs();
    const isBatched = inBatch === 'if_room' ? this.#batches.waiting < BATCH_MAX : inBatch === true;
    const loading = (
      isBatched ? this.#batches.add(ONE_QUEUE, id) : this.load([id]).then((keys) => keys.get(id) ?? null)
    )
      .then((key) => {
        const entry = { key, readAtMs };
        // `forget` ran during the query: the result may be from before the revocation and must not be cached.
        if (this.#loading.get(id) !== loading) return entry;
        if (key === null) this.#known.delete(id);
        else this.#unknown.delete(id);
        (key === null ? this.#unknown : this.#known).set(id, entry);
        return entry;
      })
      .finally(() => {
        if (this.#loading.get(id) === loading) this.#loading.delete(id);
      });
    this.#loading.set(id, loading);
    return loading;
  }
}

/** @throws PublicError INSUFFICIENT_SCOPE, which names the scopes, unless the caller has at least one of them. */
export function requireScope(
  caller: Pick<Caller, 'keyType' | 'scopes' | 'session'>,
  ...scopes: readonly Scope[]
): void {
  if (scopes.some((scope) => mayUse(caller, scope))) return;
  throw new PublicError('INSUFFICIENT_SCOPE', { message: scopeFailure(caller, scopes) });
}
