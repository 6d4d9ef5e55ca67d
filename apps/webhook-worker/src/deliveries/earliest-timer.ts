/** Upper bound of one timer, in milliseconds. */
const TIMER_MS_MAX = 60_000;

/** One timer for the earliest of many times, which does not keep the process alive. */
export class EarliestTimer {
  readonly #onTime: () => number | null;
  #timer: NodeJS.Timeout | undefined;
  #atMs = Infinity;
  #isStopped = false;

  /** @param onTime called at the earliest time; returns the next one, in the time of `performance.now()`. */
  constructor(onTime: () => number | null) {
    this.#onTime = onTime;
  }

  at(atMs: number): void {
    if (this.#isStopped || atMs >= this.#atMs) return;
    clearTimeout(this.#timer);
    this.#atMs = atMs;
    const inMs = Math.min(TIMER_MS_MAX, Math.max(1, Math.ceil(atMs - performance.now())));
    this.#timer = setTimeout(() => {
      this.#atMs = Infinity;
      const nextMs = this.#onTime();
      if (nextMs !== null) this.at(nextMs);
    }, inMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
