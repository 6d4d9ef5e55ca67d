/** How often the watch writes, in milliseconds. */
export const WATCH_EVERY_MS = 2000;
/**
 * A longer time between two writes is an outage, in milliseconds. With the interval of heartbeats (2 s) it is shorter
 * than the silence after which a gateway counts as dead, so that an outage that goes unnoticed ends no session.
 */
const BREAK_MS = 6000;
/**
 * After an outage, silence proves nothing for this long, in milliseconds. A statement of a gateway may wait 11 s for a
 * server that has been replaced, and a connection 3 s, before the next heartbeat gets through.
 */
export const SETTLED_AFTER_MS = 16_000;

/**
 * Tells whether a silent gateway or client can be judged. While PostgreSQL accepts no writes, no gateway can write its
 * heartbeat and no client can resume its session. When it answers again, a sweep may read the old heartbeats before the
 * gateways have written new ones, and would end running calls.
 */
export class OutageWatch {
  /** Since when all writes got through. */
  #writableSinceMs = Infinity;
  #wroteAtMs = -Infinity;

  /** @param write resolves when PostgreSQL has committed a write. */
  constructor(
    private readonly write: () => Promise<void>,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Writes once. The caller repeats it every {@link WATCH_EVERY_MS}. Rejects as the write does. */
  async look(): Promise<void> {
    try {
      await this.write();
    } catch (error) {
      this.#writableSinceMs = Infinity;
      throw error;
    }
    const nowMs = this.nowMs();
    if (nowMs - this.#wroteAtMs > BREAK_MS || this.#writableSinceMs === Infinity) this.#writableSinceMs = nowMs;
    this.#wroteAtMs = nowMs;
  }

  /** Whether each process that runs has had enough time to write. False after the start. */
  get isSettled(): boolean {
    const nowMs = this.nowMs();
    return nowMs - this.#wroteAtMs <= BREAK_MS && nowMs - this.#writableSinceMs >= SETTLED_AFTER_MS;
  }
}
