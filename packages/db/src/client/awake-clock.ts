/** How often this process looks whether it runs, and by how much such a look may be late, in milliseconds. */
const LOOK_MS = 100;
const LATE_MS = 100;

/**
 * Time in which this process ran. When it stood still (stopped, its machine paused, no CPU for it), the timers that came
 * due meanwhile fire before Node reads what its sockets received. A deadline on this clock leaves the time to read it.
 */
export class AwakeClock {
  readonly #looking = setInterval(() => this.#look(), LOOK_MS).unref();
  #lookedAtMs = performance.now();
  #stoodMs = 0;

  /** For how long this process has stood still so far, in milliseconds. */
  get stoodMs(): number {
    this.#look();
    return this.#stoodMs;
  }

  /** Milliseconds since some moment, without those in which this process stood still. */
  get nowMs(): number {
    this.#look();
    return this.#lookedAtMs - this.#stoodMs;
  }

  /**
   * Calls `expire` once this process has run for so long.
   * @returns what calls it off.
   */
  after(milliseconds: number, expire: () => void): () => void {
    let { stoodMs } = this;
    const due = (): void => {
      const stoodSinceMs = this.stoodMs - stoodMs;
      stoodMs += stoodSinceMs;
      if (stoodSinceMs > 0) timer = setTimeout(due, stoodSinceMs);
      else expire();
    };
    let timer = setTimeout(due, milliseconds);
    return () => clearTimeout(timer);
  }

  close(): void {
    clearInterval(this.#looking);
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lookedAtMs - LOOK_MS;
    if (lateMs > LATE_MS) this.#stoodMs += lateMs;
    this.#lookedAtMs = nowMs;
  }
}
