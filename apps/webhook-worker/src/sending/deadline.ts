/** One deadline over all of an attempt. Lighter than an AbortSignal: each attempt has one and nearly none passes. */
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

  /** Calls it when the deadline passes, at once when it has. Stages follow one another, so there is one at a time. */
  onPass(what: () => void): void {
    this.#onPass = what;
    if (this.#hasPassed) what();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#onPass = undefined;
  }
}
