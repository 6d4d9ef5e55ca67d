/** Runs `work` again and again, `intervalMs` after it last ended: a timer of this process, which no Redis can forget. */
export class Repeating {
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;

  /** @param onError what `work` threw; it runs again all the same. */
  constructor(intervalMs: number, work: (signal: AbortSignal) => Promise<void>, onError: (error: unknown) => void) {
    this.#ended = this.#repeat(intervalMs, work, onError);
  }

  /** Resolves when a run that is under way has ended. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  async #repeat(
    intervalMs: number,
    work: (signal: AbortSignal) => Promise<void>,
    onError: (error: unknown) => void,
  ): Promise<void> {
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

/** Waits so long, or until the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
