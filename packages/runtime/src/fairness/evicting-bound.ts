import { KeyedBound } from './keyed-bound.js';

/** Holds memory for a client. */
export interface Holder {
  /** Seconds in a row in which nothing of it could be freed. */
  readonly stalledSeconds: number;
  /** Frees all that it holds, and ends its connection. */
  cut(): void;
}

/** Share of the bound that is left after a cut. Otherwise every further message would cut one more connection. */
const LEFT_AFTER_CUT = 7 / 8;

/**
 * A hard bound for the memory that all holders have together. A per-connection bound does not stop a caller with many
 * connections. {@link KeyedBound} refuses an amount before it is taken. A message that has arrived, or that the
 * server has to send, takes its memory first, so this bound cuts holders instead: the longest stalled ones, then the
 * ones that hold most.
 */
export class EvictingBound {
  readonly #memory = new KeyedBound<Holder>({ max: Infinity, perKeyMax: Infinity });

  constructor(private readonly max: number) {}

  get total(): number {
    return this.#memory.total;
  }

  /** Records how much a holder has now. The call may cut it, and others too. */
  set(holder: Holder, held: number): void {
    const change = held - this.#memory.heldBy(holder);
    if (change === 0) return;
    this.#memory.add(holder, change);
    this.cut(this.max, () => true);
  }

  /** If all hold more than `max`, cuts holders that `mayCut` accepts. */
  cut(max: number, mayCut: (holder: Holder) => boolean): void {
    if (this.total <= max) return;
    const order = [...this.#memory.held]
      .filter(([holder]) => mayCut(holder))
      .sort(([one, held], [other, more]) => other.stalledSeconds - one.stalledSeconds || more - held);
    for (const [holder, held] of order) {
      if (this.total <= max * LEFT_AFTER_CUT) return;
      this.#memory.add(holder, -held);
      holder.cut();
    }
  }
}
