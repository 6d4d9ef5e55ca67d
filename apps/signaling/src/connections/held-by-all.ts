/** A connection's half that holds memory for its client. */
export interface Holder {
  /** Frees all that it holds, and ends its connection. */
  cut(): void;
}

/** Share of the bound that is left after a cut. Otherwise every further message would cut one more connection. */
const LEFT_AFTER_CUT = 7 / 8;

/**
 * A hard bound for what all connections of a process hold together. A bound for each connection alone is none for a
 * caller with many connections. Above the bound, the connections that hold most are cut.
 */
export class HeldByAll {
  readonly #max: number;
  readonly #held = new Map<Holder, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get total(): number {
    return this.#total;
  }

  /** Records what a holder holds now. It may be cut during the call, and others too. */
  set(holder: Holder, held: number): void {
    const before = this.#held.get(holder) ?? 0;
    if (held === before) return;
    this.#total += held - before;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    if (this.#total > this.#max) this.#cut();
  }

  #cut(): void {
    const largestFirst = [...this.#held].sort(([, one], [, other]) => other - one);
    for (const [holder, held] of largestFirst) {
      if (this.#total <= this.#max * LEFT_AFTER_CUT) return;
      this.#held.delete(holder);
      this.#total -= held;
      holder.cut();
    }
  }
}
