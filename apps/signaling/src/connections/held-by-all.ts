/** A connection's half that holds memory for its client. */
export interface Holder {
  /** Seconds in a row in which nothing of it could be freed. */
  readonly stalledSeconds: number;
  /** Frees all that it holds, and ends its connection. */
  cut(): void;
}

/** Share of the bound that is left after a cut. Otherwise every further message would cut one more connection. */
const LEFT_AFTER_CUT = 7 / 8;

/**
 * A hard bound for what all connections of a process hold together. A bound for each connection alone is none for a
 * caller with many connections. Above the bound, connections are cut: those that have been stalled longest, then those
 * that hold most.
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
    this.cut(this.#max, () => true);
  }

  /** If all hold more than `max`, cuts holders that `mayCut` accepts. */
  cut(max: number, mayCut: (holder: Holder) => boolean): void {
    if (this.#total <= max) return;
    const order = [...this.#held]
      .filter(([holder]) => mayCut(holder))
      .sort(([one, held], [other, more]) => other.stalledSeconds - one.stalledSeconds || more - held);
    for (const [holder, held] of order) {
      if (this.#total <= max * LEFT_AFTER_CUT) return;
      this.#held.delete(holder);
      this.#total -= held;
      holder.cut();
    }
  }
}
