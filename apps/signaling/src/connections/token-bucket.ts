/** `burst` tokens, refilled at `perSecond`; a rate of 0 means no limit. */
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

  /** Whether a token was there to be taken. */
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
