/**
 * A bound for all holders together, such as environments that each hold unread answers. Up to it they may hold anything;
 * beyond it, each at most an equal share. So a few holders take nothing from the others. A caller that adds holders
 * without limit needs a bound of its own for the total, because each new one gets a share.
 */
export class SharedBound {
  readonly #max: number;
  #total = 0;
  #holders = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get total(): number {
    return this.#total;
  }

  /** Whether a holder of `own` may hold `more` in addition. With 0: whether it may keep what it holds. */
  allows(own: number, more: number): boolean {
    if (this.#total + more <= this.#max) return true;
    return (own + more) * (this.#holders + (own === 0 ? 1 : 0)) <= this.#max;
  }

  /** Records that a holder has changed what it holds. */
  change(before: number, after: number): void {
    this.#total += after - before;
    if (before === 0 && after > 0) this.#holders += 1;
    if (before > 0 && after === 0) this.#holders -= 1;
  }
}
