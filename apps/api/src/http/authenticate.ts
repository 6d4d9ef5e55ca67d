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
} from '@callplane/core';
import type { Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { consoleSecretOf, refuseCrossSite } from '../console/console-cookie.js';
import {
  contextOf,
  type CallerDirectory,
  type LookUpOptions,
  type MatchesRoute,
  type RequestMetrics,
} from './request-context.js';

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
  return async (request: Request, response: Response): Promise<void> => {
    const credential = credentialOf(directories, request, isSignIn);
    if (credential === null) {
      metrics.unauthenticated('no_key');
      throw unauthenticated(formFailure(request.headers));
    }
    const { secret, directory } = credential;
    const hash = hashApiKeyHex(secret);
    const context = contextOf(response);
    const waitMs = directory.hasSeen(hash) ? 0 : unknownKeyPace.waitMs(addressKey(context.ip), performance.now());
    const caller = await directory.find(hash, { inBatch: waitMs > 0, isRequest: true });
    if (caller !== null) {
      context.caller = caller;
      context.isKeyValid = async (options) => (await directory.find(hash, options)) !== null;
      if (caller.session !== undefined) refuseCrossSite(request);
      return;
    }
    const isUnknown = !directory.hasSeen(hash);
    const isLimited = isUnknown && waitMs > 0;
    metrics.unauthenticated(isLimited ? 'too_many' : 'invalid_key');
    if (isLimited && !isUnlimited(request)) {
      throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) } });
    }
    if (isUnknown && !isLimited) unknownKeyPace.charge(addressKey(context.ip), performance.now());
    throw unauthenticated(WRONG_CREDENTIALS[request.headers.authorization === undefined ? 'session' : 'unknown']);
  };
}

/** The credential of a request; null if there is none in the right form. The header wins over the cookie. */
function credentialOf({ keys, console }: Directories, request: Request, isSignIn: MatchesRoute): Credential | null {
  const { authorization } = request.headers;
  // The checksum in a key, a code or a cookie rejects typos without a look-up.
  if (authorization !== undefined) {
    const key = bearerToken(authorization);
    if (key === null) return null;
    if (parseApiKey(key) !== null) return { secret: key, directory: keys };
    const isLogin = console !== null && isSignIn(request) && isLoginCode(key);
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
/** Keys in one batched look-up. Look-ups are batched for client addresses that have sent too many unknown keys. */
const BATCH_MAX = 500;
const BATCH_EVERY_MS = 100;

interface Entry {
  readonly key: StoredKey | null;
  /** When the query began. The result may lack a revocation that happened after this time. */
  readonly readAtMs: number;
}

interface Waiting {
  readonly id: string;
  readonly resolve: (key: StoredKey | null) => void;
  readonly reject: (error: unknown) => void;
}

/** Caches API keys so that most requests need no database query. */
export class CallerCache implements CallerDirectory {
  readonly #load: (keyHashes: readonly string[]) => Promise<ReadonlyMap<string, StoredKey>>;
  readonly #clock: Clock;
  readonly #monotonicMs: () => number;
  readonly #known = new LRUCache<string, Entry>({ max: KEYS_MAX });
  readonly #unknown = new LRUCache<string, Entry>({ max: KEYS_MAX });
  readonly #loading = new Map<string, Promise<Entry>>();
  #batch: Waiting[] = [];
  #isBatchDue = false;

  /** @param load finds keys by their hexadecimal hashes. The result omits unknown keys. */
  constructor(
    load: (keyHashes: readonly string[]) => Promise<ReadonlyMap<string, StoredKey>>,
    clock: Clock,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#clock = clock;
    this.#monotonicMs = monotonicMs;
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
    return key.expiresAt === null || key.expiresAt > this.#clock.now() ? key : null;
  }

  forget(keyHashHex: string): void {
    this.#known.delete(keyHashHex);
    this.#loading.delete(keyHashHex);
  }

  #isFresh({ readAtMs }: Entry, freshMs: number): boolean {
    return this.#monotonicMs() - readAtMs <= freshMs;
  }

  /** Runs at most one query per key at a time. All requests for that key share its result. */
  #read(id: string, inBatch: LookUpOptions['inBatch']): Promise<Entry> {
    const underWay = this.#loading.get(id);
    if (underWay !== undefined) return underWay;
    const readAtMs = this.#monotonicMs();
    const isBatched = inBatch === 'if_room' ? this.#batch.length < BATCH_MAX : inBatch === true;
    const loading = (isBatched ? this.#inBatch(id) : this.#load([id]).then((keys) => keys.get(id) ?? null))
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

  #inBatch(id: string): Promise<StoredKey | null> {
    if (this.#batch.length >= BATCH_MAX) {
      return Promise.reject(new PublicError('UNAVAILABLE', { headers: { 'retry-after': '1' } }));
    }
    return new Promise((resolve, reject) => {
      this.#batch.push({ id, resolve, reject });
      if (!this.#isBatchDue) this.#scheduleBatch();
    });
  }

  #scheduleBatch(): void {
    this.#isBatchDue = true;
    setTimeout(() => void this.#readBatch(), BATCH_EVERY_MS);
  }

  /** Never rejects. */
  async #readBatch(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    try {
      const keys = await this.#load(batch.map(({ id }) => id));
      for (const { id, resolve } of batch) resolve(keys.get(id) ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    // Clears the flag only now, so that two batches never overlap and the pause begins after each one.
    this.#isBatchDue = false;
    if (this.#batch.length > 0) this.#scheduleBatch();
  }
}
