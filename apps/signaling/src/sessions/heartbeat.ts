import type { Logger } from '@callplane/runtime';

/** Without a sign of life for so long others count this instance as dead, and end its sessions. */
export const INSTANCE_DEAD_MS = 8000;

/** Tells the database that this instance lives; after a long silence it looks at what became of its sessions. */
export class Heartbeat {
  readonly #beat: () => Promise<void>;
  readonly #onRecovered: () => Promise<void>;
  readonly #logger: Logger;
  #beatAtMs = performance.now();
  #failing = false;

  constructor(beat: () => Promise<void>, onRecovered: () => Promise<void>, logger: Logger) {
    this.#beat = beat;
    this.#onRecovered = onRecovered;
    this.#logger = logger;
  }

  /** Once; to be repeated. Never rejects. */
  async beat(): Promise<void> {
    try {
      await this.#beat();
    } catch (error) {
      if (!this.#failing) this.#logger.warn('heartbeat fails', { error });
      this.#failing = true;
      return;
    }
    const silentMs = performance.now() - this.#beatAtMs;
    this.#beatAtMs = performance.now();
    if (this.#failing) this.#logger.info('heartbeat is back', { silentMs: Math.round(silentMs) });
    this.#failing = false;
    if (silentMs < INSTANCE_DEAD_MS) return;
    await this.#onRecovered().catch((error: unknown) => {
      this.#logger.warn('rooms not read after a silence', { error });
    });
  }
}
