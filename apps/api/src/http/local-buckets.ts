import { LRUCache } from 'lru-cache';

/** Callers whose buckets one process keeps. A bucket is two numbers. */
const CALLERS_MAX = 10_000;

export interface Taken {
  refused: boolean;
  /** Whole tokens left in the bucket. */
  remaining: number;
  /** Milliseconds until the next token if the request is refused, otherwise until the bucket is full. */
  waitMs: number;
}

/**
 * In-memory token buckets that replace Redis while it is unavailable. Every instance has its own buckets, so N
 * instances together allow N times the rate. Beyond CALLERS_MAX the cache evicts the least recently used caller, which
 * then starts again with a full bucket.
 */
export class LocalBuckets {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #buckets = new LRUCache<string, { used: number; atMs: number }>({ max: CALLERS_MAX });

  constructor(capacity: number, perSecond: number) {
    this.#capacity = capacity;
    this.#perMs = perSecond / 1000;
  }

  /** @param nowMs from a monotonic clock. */
  take(caller: string, nowMs: number): Taken {
    const bucket = this.#buckets.get(caller) ?? { used: 0, atMs: nowMs };
    const used = Math.max(0, bucket.used - (nowMs - bucket.atMs) * this.#perMs);
    const requested = used + 1;
    if (requested > this.#capacity) {
      return { refused: true, remaining: 0, waitMs: Math.ceil((requested - this.#capacity) / this.#perMs) };
    }
    this.#buckets.set(caller, { used: requested, atMs: nowMs });
    return {
      refused: false,
      remaining: Math.floor(this.#capacity - requested),
      waitMs: Math.ceil(requested / this.#perMs),
    };
  }
}
