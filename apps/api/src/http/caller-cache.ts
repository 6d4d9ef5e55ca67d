import { PublicError, type Caller, type Clock } from '@callplane/core';
import { LRUCache } from 'lru-cache';
import type { CallerDirectory, LookUpOptions } from './request-context.js';

/** An API key as the database stores it. */
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
/** The pause between two batched look-ups, in milliseconds. */
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

  hasSeen(keyHash: Buffer): boolean {
    return this.#known.has(keyHash.toString('hex'));
  }

  async find(keyHash: Buffer, { inBatch = false }: LookUpOptions = {}): Promise<Caller | null> {
    const id = keyHash.toString('hex');
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

  /** Drops a key after the notice of its revocation. */
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
