export interface QueueSettings<Item> {
  /**
   * Items of the same owner are never in one batch. They run in the order in which they were added. Not together with
   * `tenantOf`.
   */
  ownerOf?(item: Item): string;
  /**
   * The tenants of waiting items take turns when a batch is filled, so that one with many requests does not delay the
   * others. Default: first come, first served.
   */
  tenantOf?(item: Item): string;
  /** Maximum number of items of a key that wait for a batch: in all, and of one tenant. Default: no limit. */
  waitingMax?: { all: number; ofTenant: number };
}

export interface Queued<Item, Result> {
  item: Item;
  /** From `performance.now()`. */
  addedAtMs: number;
  resolve: (result: Result | Promise<Result>) => void;
  reject: (error: unknown) => void;
}

const NO_TENANT = '';

/** The items of a key that wait for a batch. */
export class BatchQueue<Item, Result> {
  readonly #settings: QueueSettings<Item>;
  /** The items of each tenant, oldest first. The tenants are in the order of their turns. */
  readonly #lines = new Map<string, Queued<Item, Result>[]>();
  #size = 0;

  constructor(settings: QueueSettings<Item>) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#size;
  }

  /** When the oldest item was added; Infinity without items. */
  get oldestMs(): number {
    let oldest = Infinity;
    for (const [first] of this.#lines.values()) oldest = Math.min(oldest, first?.addedAtMs ?? Infinity);
    return oldest;
  }

  /** @returns why the item was not added, or null. */
  push(queued: Queued<Item, Result>): string | null {
    const { tenantOf, waitingMax } = this.#settings;
    const tenant = tenantOf?.(queued.item) ?? NO_TENANT;
    const line = this.#lines.get(tenant);
    if (waitingMax !== undefined) {
      if (this.#size >= waitingMax.all) return `${waitingMax.all} items`;
      if ((line?.length ?? 0) >= waitingMax.ofTenant) return `${waitingMax.ofTenant} items of one tenant`;
    }
    if (line === undefined) this.#lines.set(tenant, [queued]);
    else line.push(queued);
    this.#size += 1;
    return null;
  }

  /** Removes the items of the next batch. */
  take(max: number): Queued<Item, Result>[] {
    const { ownerOf } = this.#settings;
    const taken = ownerOf === undefined ? this.#takeInTurns(max) : this.#takeOnePerOwner(max, ownerOf);
    this.#size -= taken.length;
    return taken;
  }

  /** Removes the items that were added before this time. */
  takeOlder(beforeMs: number): Queued<Item, Result>[] {
    const taken: Queued<Item, Result>[] = [];
    for (const [tenant, line] of this.#lines) {
      const firstYounger = line.findIndex(({ addedAtMs }) => addedAtMs > beforeMs);
      taken.push(...line.splice(0, firstYounger === -1 ? line.length : firstYounger));
      if (line.length === 0) this.#lines.delete(tenant);
    }
    this.#size -= taken.length;
    return taken;
  }

  #takeInTurns(max: number): Queued<Item, Result>[] {
    const taken: Queued<Item, Result>[] = [];
    while (taken.length < max) {
      const [next] = this.#lines;
      if (next === undefined) break;
      const [tenant, line] = next;
      // A lone tenant fills the rest of the batch.
      const count = this.#lines.size === 1 ? max - taken.length : 1;
      taken.push(...line.splice(0, count));
      this.#lines.delete(tenant);
      if (line.length > 0) this.#lines.set(tenant, line);
    }
    return taken;
  }

  #takeOnePerOwner(max: number, ownerOf: (item: Item) => string): Queued<Item, Result>[] {
    const line = this.#lines.get(NO_TENANT) ?? [];
    const owners = new Set<string>();
    const taken: Queued<Item, Result>[] = [];
    const left: Queued<Item, Result>[] = [];
    for (const queued of line) {
      const owner = ownerOf(queued.item);
      if (taken.length < max && !owners.has(owner)) taken.push(queued);
      else left.push(queued);
      owners.add(owner);
    }
    if (left.length > 0) this.#lines.set(NO_TENANT, left);
    else this.#lines.delete(NO_TENANT);
    return taken;
  }
}
