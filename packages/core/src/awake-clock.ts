/**
 * Interval at which the clock checks that the process runs, and the delay of a check that still counts as running. In
 * milliseconds.
 */
const LOOK_MS = 100;
const LATE_MS = 100;

/**
 * A clock that counts only the time in which this process ran. After a pause (SIGSTOP, a paused machine, CPU
 * starvation), Node fires the due timers before it reads the sockets. A deadline on this clock leaves time to read
 * responses that arrived during the pause.
 */
class AwakeClock {
  #lookedAtMs = performance.now();
  #stoodMs = 0;

  constructor() {
    setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Total time for which this process has been paused so far, in milliseconds. */
  get stoodMs(): number {
    this.#look();
    return this.#stoodMs;
  }

  /** Milliseconds since an arbitrary moment, without the time in which this process was paused. */
  get nowMs(): number {
    this.#look();
    return this.#lookedAtMs - this.#stoodMs;
  }

  /**
   * Calls `expire` once this process has run for `milliseconds`.
   * @returns a function that cancels the timer.
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

  #look(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#lookedAtMs - LOOK_MS;
    if (lateMs > LATE_MS) this.#stoodMs += lateMs;
    this.#lookedAtMs = nowMs;
  }
}

export type { AwakeClock };

let clock: AwakeClock | undefined;

/** The one clock of this process, made when it is first used. */
export function awakeClock(): AwakeClock {
  clock ??= new AwakeClock();
  return clock;
}
