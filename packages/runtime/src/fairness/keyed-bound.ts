export interface KeyedBoundSettings {
  /** Maximum amount of all keys together. */
  max: number;
  /** Maximum amount of one key. */
  perKeyMax: number;
  /** Above this total, a key gets no more than an equal share of it. Default: `max`, which leaves no room for shares. */
  sharedFrom?: number;
}

/**
 * Bounds an amount that keys hold, such as connections or bytes of environments: the amount of each key, and the total.
 * With `sharedFrom`, a few keys with much take nothing from the others. A caller that adds keys without limit needs the
 * bound of the total, because each new key gets a share.
 */
export class KeyedBound<Key = string> {
  readonly #held = new Map<Key, number>();
  #total = 0;

  constructor(private readonly settings: KeyedBoundSettings) {}

  get total(): number {
    return this.#total;
  }

  /** The keys that hold something, with their amounts. */
  get held(): ReadonlyMap<Key, number> {
    return this.#held;
  }

  heldBy(key: Key): number {
    return this.#held.get(key) ?? 0;
  }

  /** Whether a key may hold `amount` in addition. */
  allows(key: Key, amount: number): boolean {
    const { max, perKeyMax, sharedFrom = max } = this.settings;
    const own = this.heldBy(key) + amount;
    const total = this.#total + amount;
    if (own > perKeyMax || total > max) return false;
    const keys = this.#held.size + (this.#held.has(key) ? 0 : 1);
    return total <= sharedFrom || own * keys <= sharedFrom;
  }

  /** Counts an amount, even beyond the bounds. A negative one gives back. */
  add(key: Key, amount: number): void {
    const own = this.heldBy(key) + amount;
    this.#total += amount;
    if (own === 0) this.#held.delete(key);
    else this.#held.set(key, own);
  }

  /** @returns a function that gives the amount back, whose further calls do nothing; null if a bound refuses it. */
  take(key: Key, amount = 1): (() => void) | null {
    if (!this.allows(key, amount)) return null;
    this.add(key, amount);
    let isHeld = true;
    return () => {
      if (isHeld) this.add(key, -amount);
      isHeld = false;
    };
  }
}
