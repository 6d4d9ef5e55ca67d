/** Running attempts and statements, which a drain waits for. */
export class RunningWork {
  readonly #running = new Set<Promise<unknown>>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  add(work: Promise<unknown>): void {
    const running = work.catch(this.#onError).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves once nothing is running, with what begins meanwhile. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
