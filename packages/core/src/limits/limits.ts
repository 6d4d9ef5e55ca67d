import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';

/** How long `GET /v1/events` may wait: below the 60 s after which load balancers usually give up a request. */
export const EVENT_WAIT_SECONDS_MAX = 30;
/** Requests of one environment that may wait for events at one API process. */
export const EVENT_WAITS_PER_ENVIRONMENT_MAX = 20;
/** Requests of all environments that may wait for events at one API process. */
export const EVENT_WAITS_MAX = 1000;
/** Interval between two reads for all waiting requests of an API process, in milliseconds. */
export const EVENT_READ_EVERY_MS = 500;

/** Requests to participants that may wait at one API process: of one environment, and of all. */
export const ASK_WAITS_PER_ENVIRONMENT_MAX = 100;
export const ASK_WAITS_MAX = 1000;

/** Bounds of a message to participants, equal for clients and for the server. */
export const MESSAGE_BYTES_MAX = 16 * 1024;
export const MESSAGE_RECIPIENTS_MAX = 100;

/** The `from` of a message that the server sends. Participant ids begin with `part_`. */
export const SERVER_SENDER = 'server';

/** After this time without a heartbeat, in milliseconds, the cleanup worker ends the sessions of an instance. */
export const INSTANCE_DEAD_MS = 8000;

/** A rate limit: `burst` uses at once, then `perMinute`; a rate of 0 means no limit. */
export interface Pace {
  perMinute: number;
  burst: number;
}

/** A rate limit in milliseconds: the time that one use takes, and how far ahead of the clock the uses may run. */
export interface PaceTimes {
  /** 0 means no limit. */
  intervalMs: number;
  aheadMs: number;
}

/**
 * Parameters of the generic cell rate algorithm, which stores a token bucket as a single time: when the bucket is full
 * again. Each use moves that time by `intervalMs`; a use is refused while the time lies more than `aheadMs` in the
 * future.
 */
export function paceTimes({ perMinute, burst }: Pace): PaceTimes {
  if (perMinute === 0) return { intervalMs: 0, aheadMs: 0 };
  const intervalMs = Math.ceil(60_000 / perMinute);
  return { intervalMs, aheadMs: (Math.max(1, burst) - 1) * intervalMs };
}

/** A rate of 0 means no limit; a burst below the rate counts as the rate. */
export interface BucketSettings {
  perSecond: number;
  burst: number;
}

export function bucketTimes({ perSecond, burst }: BucketSettings): PaceTimes {
  const intervalMs = perSecond === 0 ? 0 : 1000 / perSecond;
  // Sums of fractions are not exact.
  return { intervalMs, aheadMs: (Math.max(burst, perSecond) - 1) * intervalMs + 1e-6 };
}

/** A token bucket in the memory of this process, by the same algorithm. Times are of a monotonic clock. */
export class TokenBucket {
  #fullAtMs = -Infinity;

  constructor(private readonly times: PaceTimes) {}

  /** Milliseconds until the bucket has a token; 0 when it has one. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#fullAtMs - nowMs - this.times.aheadMs);
  }

  fullInMs(nowMs: number): number {
    return Math.max(0, this.#fullAtMs - nowMs);
  }

  /** Milliseconds until the bucket is half full; 0 when it is. */
  halfFullInMs(nowMs: number): number {
    return Math.max(0, this.#fullAtMs - nowMs - this.times.aheadMs / 2);
  }

  take(nowMs: number): boolean {
    if (this.waitMs(nowMs) > 0) return false;
    this.charge(nowMs);
    return true;
  }

  /** Takes tokens that the bucket may owe. It owes at most its own size, which one full refill pays back. */
  charge(nowMs: number, count = 1): void {
    const { intervalMs, aheadMs } = this.times;
    this.#fullAtMs = nowMs + Math.min(this.fullInMs(nowMs) + count * intervalMs, 2 * (aheadMs + intervalMs));
  }
}

/**
 * Token buckets of many keys. Call `waitMs` before an attempt, and `charge` only if the attempt has failed. Many good
 * attempts at once therefore never exhaust a bucket. Beyond `keysMax` keys, the least recently charged one is dropped.
 */
export class KeyedPace {
  readonly #buckets: LRUCache<string, TokenBucket>;

  constructor(
    private readonly times: PaceTimes,
    keysMax: number,
  ) {
    this.#buckets = new LRUCache({ max: keysMax });
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Milliseconds until the bucket of this key has a token; 0 when it has one. */
  waitMs(key: string, nowMs: number): number {
    return this.#buckets.peek(key)?.waitMs(nowMs) ?? 0;
  }

  /** @returns milliseconds until the bucket is full again. */
  charge(key: string, nowMs: number, count = 1): number {
    if (this.times.intervalMs === 0) return 0;
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.times);
    bucket.charge(nowMs, count);
    this.#buckets.set(key, bucket);
    return bucket.fullInMs(nowMs);
  }
}

/**
 * The key under which a client's address is rate-limited: a whole IPv4 address, or the /64 of an IPv6 address, because
 * a provider gives one customer a /64.
 */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const bytes = parsed.toByteArray().fill(0, 8);
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}
