import { INSTANCE_DEAD_MS } from '@callplane/core';
import type { Logger } from '@callplane/runtime';

/** Writes this instance's heartbeat to the database. After a long silence it checks which sessions were ended. */
export class Heartbeat {
  readonly #beat: () => Promise<void>;
  #beatAtMs = performance.now();
  #failing = false;
  #restoredAtMs = -Infinity;

  constructor(
    beat: () => Promise<void>,
    private readonly onRecovered: () => Promise<void>,
    private readonly logger: Logger,
  ) {
    this.#beat = beat;
  }

  /** How long ago the last long silence ended, in milliseconds: 0 while it lasts, Infinity if there was none. */
  get steadyMs(): number {
    const nowMs = performance.now();
    return nowMs - this.#beatAtMs < INSTANCE_DEAD_MS ? nowMs - this.#restoredAtMs : 0;
  }

  async beat(): Promise<void> {
    try {
      await this.#beat();
    } catch (error) {
      if (!this.#failing) this.logger.warn('heartbeat failed', { error });
      this.#failing = true;
      return;
    }
    const silentMs = performance.now() - this.#beatAtMs;
    this.#beatAtMs = performance.now();
    if (this.#failing) this.logger.info('heartbeat restored', { silentMs: Math.round(silentMs) });
    this.#failing = false;
    if (silentMs < INSTANCE_DEAD_MS) return;
    this.#restoredAtMs = this.#beatAtMs;
    await this.onRecovered().catch((error: unknown) => {
      this.logger.warn('room resync after missed heartbeats failed', { error });
    });
  }
}
