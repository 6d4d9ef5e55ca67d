/** Welcomes of this instance that have not left it, in bytes. */
const WELCOME_BYTES_MAX = 16 * 1024 * 1024;
/**
 * How long a welcome counts that does not leave, in milliseconds. Otherwise a few clients that read nothing could keep
 * everyone else from joining. The outbox of the slow connection still bounds its own bytes.
 */
const WELCOME_STALLED_MS = 2000;

/**
 * Bounds the memory that welcomes take when thousands of clients arrive at once. A welcome is built only when its turn
 * comes; the turns are in order.
 */
export class WelcomePacer {
  readonly #bytesMax: number;
  readonly #stalledMs: number;
  readonly #waiting: (() => void)[] = [];
  #bytes = 0;

  constructor(bytesMax = WELCOME_BYTES_MAX, stalledMs = WELCOME_STALLED_MS) {
    this.#bytesMax = bytesMax;
    this.#stalledMs = stalledMs;
  }

  /** Bytes of welcomes that have not left, except stalled ones. */
  get bytesInFlight(): number {
    return this.#bytes;
  }

  /**
   * Calls `send` as soon as fewer than the maximum of bytes are unsent and every earlier call had its turn.
   * @param send builds and sends a welcome. It passes its size to `reserve`, and calls the result when it has left.
   */
  async inTurn<Result>(send: (reserve: (bytes: number) => () => void) => Result): Promise<Result> {
    if (this.#bytes >= this.#bytesMax || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    try {
      return send((bytes) => this.#reserve(bytes));
    } finally {
      this.#wake();
    }
  }

  #reserve(bytes: number): () => void {
    this.#bytes += bytes;
    let isCounted = true;
    const giveBack = () => {
      clearTimeout(stalled);
      if (!isCounted) return;
      isCounted = false;
      this.#bytes -= bytes;
      this.#wake();
    };
    const stalled = setTimeout(giveBack, this.#stalledMs);
    return giveBack;
  }

  /** Wakes one turn: it may use up what is left. It wakes the next one itself. */
  #wake(): void {
    if (this.#bytes < this.#bytesMax) this.#waiting.shift()?.();
  }
}
