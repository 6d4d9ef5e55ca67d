/** How often a caller tries whether PostgreSQL answers again, in milliseconds. */
const RETRY_MS = 100;

interface Waiter {
  sinceMs: number;
  retry: () => void;
}

/**
 * Callers that wait for a PostgreSQL that refuses connections. Only the one that has waited longest tries again; once it
 * has a connection, all others get theirs. A caller whose time is over tries a last time, and fails.
 */
export class WaitingRoom {
  /** The one that has waited longest is the first, also after it has tried. */
  readonly #waiting: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param waitMs how long a caller waits at most
   * @param waitingMax number of callers that may wait
   */
  constructor(
    private readonly waitMs: number,
    private readonly waitingMax: number,
  ) {}

  /**
   * @param sinceMs when the caller asked for a connection, in the time of `performance.now()`
   * @returns false if the caller may not wait: its time is over, or too many wait
   */
  wait(sinceMs: number, retry: () => void): boolean {
    if (performance.now() - sinceMs >= this.waitMs || this.#waiting.length >= this.waitingMax) return false;
    const before = this.#waiting.findLastIndex((other) => other.sinceMs <= sinceMs);
    this.#waiting.splice(before + 1, 0, { sinceMs, retry });
    this.#timer ??= setTimeout(() => this.#tick(), RETRY_MS);
    return true;
  }

  get count(): number {
    return this.#waiting.length;
  }

  /** PostgreSQL has accepted a connection. */
  open(): void {
    if (this.#waiting.length === 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { retry } of this.#waiting.splice(0)) retry();
  }

  #tick(): void {
    const now = performance.now();
    const overdue = this.#waiting.filter(({ sinceMs }) => now - sinceMs >= this.waitMs).length;
    const tries = this.#waiting.splice(0, overdue + 1);
    this.#timer = this.#waiting.length > 0 ? setTimeout(() => this.#tick(), RETRY_MS) : undefined;
    for (const { retry } of tries) retry();
  }
}
