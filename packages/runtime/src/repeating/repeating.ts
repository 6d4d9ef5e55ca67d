import { setTimeout as delay } from 'node:timers/promises';

export type Work = (signal: AbortSignal) => Promise<void>;

/** Runs `work` repeatedly, `intervalMs` after its last end. Its timer does not depend on Redis. */
export class Repeating {
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;

  /** @param onError called with errors of `work`, which runs again regardless. */
  constructor(intervalMs: number, work: Work, onError: (error: unknown) => void) {
    this.#ended = this.#repeat(intervalMs, work, onError);
  }

  /** Stops repeating. Resolves once a current run has ended. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  async #repeat(intervalMs: number, work: Work, onError: (error: unknown) => void): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        await work(signal);
      } catch (error) {
        onError(error);
      }
      await pause(intervalMs, signal);
    }
  }
}

/** Waits until the time has passed or the signal aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => undefined);
}
