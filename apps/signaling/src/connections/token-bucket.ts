/**
 * A bucket of `burst` tokens that refills at `perSecond`. A rate of 0 means no limit; a burst below the rate counts as
 * the rate.
 */
export interface BucketSettings {
  perSecond: number;
  burst: number;
}

/** A token bucket in this process's memory. */
export class TokenBucket {
  readonly #settings: BucketSettings;
  #tokens: number;
  #atMs: number;

  constructor(settings: BucketSettings, nowMs: number) {
    this.#settings = { perSecond: settings.perSecond, burst: Math.max(settings.burst, settings.perSecond) };
    this.#tokens = this.#settings.burst;
    this.#atMs = nowMs;
  }

  /** Takes a token. Returns false if the bucket is empty. */
  take(nowMs: number): boolean {
    const { perSecond, burst } = this.#settings;
    if (perSecond === 0) return true;
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#atMs) * perSecond) / 1000);
    this.#atMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
