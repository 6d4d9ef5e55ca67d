import { abortable, CallplaneError } from '../errors.js';

/** Turns of streams: some are sent at a time, and others wait. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(
    atOnce: number,
    private readonly waitingMax: number,
  ) {
    this.#free = atOnce;
  }

  /** @throws CallplaneError `too_many_streams`, or the reason of the signal */
  async take(signal: AbortSignal | undefined): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    if (this.#waiting.length >= this.waitingMax) throw new CallplaneError('too_many_streams', 'Too many streams wait.');
    let next = (): void => undefined;
    const turn = new Promise<void>((resolve) => this.#waiting.push((next = resolve)));
    try {
      await abortable(turn, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(next);
      if (at < 0) this.release();
      else this.#waiting.splice(at, 1);
      throw error;
    }
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  /** The call is over: all waiting streams continue, and fail. */
  giveAll(): void {
    for (const next of this.#waiting.splice(0)) next();
  }
}
