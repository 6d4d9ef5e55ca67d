/** The deadline of a whole attempt. It is cheaper than an AbortSignal, and nearly no deadline ever passes. */
export class Deadline {
  readonly #timer: NodeJS.Timeout;
  #onPass: (() => void) | undefined;
  #hasPassed = false;

  constructor(afterMs: number) {
    this.#timer = setTimeout(() => {
      this.#hasPassed = true;
      this.#onPass?.();
    }, afterMs);
  }

  get hasPassed(): boolean {
    return this.#hasPassed;
  }

  /**
   * Calls `what` when the deadline passes, or at once if it has passed. A new callback replaces the previous one,
   * because the stages of an attempt run one after another.
   */
  onPass(what: () => void): void {
    this.#onPass = what;
    if (this.#hasPassed) what();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#onPass = undefined;
  }
}
