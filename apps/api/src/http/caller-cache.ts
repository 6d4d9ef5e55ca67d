import type { Caller, Clock } from '@callplane/core';
import { LRUCache } from 'lru-cache';
import type { CallerDirectory } from './authenticate.js';

/** A key as the database knows it. */
export interface StoredKey extends Caller {
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

/**
 * How old an answer of the database may be, in milliseconds. A revoked key must be refused everywhere within 5
 * seconds, also where the notice of its revocation was lost.
 */
const FRESH_MS = 4000;
const KEYS_MAX = 10_000;

interface Entry {
  readonly key: StoredKey | null;
  /** When the query began: what was revoked after that may be missing from it. */
  readonly askedAtMs: number;
}

/** Keeps the key look-up off the hot path. */
export class CallerCache implements CallerDirectory {
  readonly #load: (keyHash: Buffer) => Promise<StoredKey | null>;
  readonly #clock: Clock;
  readonly #monotonicMs: () => number;
  readonly #entries = new LRUCache<string, Entry>({ max: KEYS_MAX });
  readonly #loading = new Map<string, Promise<Entry>>();

  constructor(
    load: (keyHash: Buffer) => Promise<StoredKey | null>,
    clock: Clock,
    monotonicMs: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#clock = clock;
    this.#monotonicMs = monotonicMs;
  }

  async find(keyHash: Buffer): Promise<Caller | null> {
    const id = keyHash.toString('hex');
    let entry = this.#entries.get(id);
    if (entry === undefined || this.#monotonicMs() - entry.askedAtMs > FRESH_MS) entry = await this.#ask(id, keyHash);
    const { key } = entry;
    if (key === null || key.revokedAt !== null) return null;
    return key.expiresAt === null || key.expiresAt > this.#clock.now() ? key : null;
  }

  /** For the notice of a revocation. */
  forget(keyHashHex: string): void {
    this.#entries.delete(keyHashHex);
    this.#loading.delete(keyHashHex);
  }

  /** One query at a time for a key, however many requests wait for it. */
  #ask(id: string, keyHash: Buffer): Promise<Entry> {
    const underWay = this.#loading.get(id);
    if (underWay !== undefined) return underWay;
    const askedAtMs = this.#monotonicMs();
    const loading = this.#load(keyHash)
      .then((key) => {
        const entry = { key, askedAtMs };
        // Not kept when the key was forgotten meanwhile.
        if (this.#loading.get(id) === loading) this.#entries.set(id, entry);
        return entry;
      })
      .finally(() => {
        if (this.#loading.get(id) === loading) this.#loading.delete(id);
      });
    this.#loading.set(id, loading);
    return loading;
  }
}
