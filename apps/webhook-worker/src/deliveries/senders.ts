/**
 * How many requests a worker has under way, in the order in which they ask. Claims may run a little ahead of it, so that
 * a sender that comes free finds its next delivery at once.
 */
export class Senders {
  readonly #max: number;
  readonly #waiting: ((mayStart: boolean) => void)[] = [];
  #inUse = 0;
  #isDraining = false;

  constructor(max: number) {
    this.#max = max;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** Resolves to whether to start; then `leave` gives the place back. False while draining. */
  enter(): Promise<boolean> | boolean {
    if (this.#isDraining) return false;
    if (this.#inUse >= this.#max) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#inUse += 1;
    return true;
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inUse -= 1;
    else next(true);
  }

  /** What is under way ends by itself; nothing more starts. */
  drain(): void {
    this.#isDraining = true;
    for (const resolve of this.#waiting.splice(0)) resolve(false);
  }
}
