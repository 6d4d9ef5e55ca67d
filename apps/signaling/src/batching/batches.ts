/** Runs work when its turn comes, e.g. `pLimit`. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

export interface BatchSettings<Item, Result> {
  /** Runs a batch. The results are in the order of the items. If it rejects, all items of the batch are rejected. */
  run(key: string, items: Item[]): Promise<Result[]>;
  /** Maximum number of items in a batch. */
  sizeMax: number;
  /** Limits how many batches run at once, over all keys. A batch that waits for its turn keeps filling. */
  turns?: Turns;
  /** Items of the same owner are never in one batch. They run in the order in which they were added. */
  ownerOf?(item: Item): string;
  /** Called after each batch. */
  onBatch?(size: number, durationMs: number): void;
}

/** The key of batches that are not restricted to one room. */
export const ALL_ROOMS = '';

interface Queued<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Items of a key run together, one batch at a time. If no batch of the key is running, one starts at the end of the
 * current event-loop tick, with everything queued by then. Otherwise the items wait for the next one.
 */
export class Batches<Item, Result> {
  readonly #settings: BatchSettings<Item, Result>;
  /** The keys with a batch that runs or waits for its turn, and the items for the batches after it. */
  readonly #queues = new Map<string, Queued<Item, Result>[]>();

  constructor(settings: BatchSettings<Item, Result>) {
    this.#settings = settings;
  }

  /** Resolves with the item's own result. */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const queued = { item, resolve, reject };
      const queue = this.#queues.get(key);
      if (queue !== undefined) {
        queue.push(queued);
        return;
      }
      const fresh = [queued];
      this.#queues.set(key, fresh);
      setImmediate(() => void this.#drain(key, fresh));
    });
  }

  async #drain(key: string, queue: Queued<Item, Result>[]): Promise<void> {
    const turns: Turns = this.#settings.turns ?? ((work) => work());
    while (queue.length > 0) await turns(() => this.#runOne(key, this.#take(queue)));
    this.#queues.delete(key);
  }

  /** Removes the items of the next batch from the queue. */
  #take(queue: Queued<Item, Result>[]): Queued<Item, Result>[] {
    const { ownerOf, sizeMax } = this.#settings;
    if (ownerOf === undefined) return queue.splice(0, sizeMax);
    const owners = new Set<string>();
    const taken: Queued<Item, Result>[] = [];
    const left: Queued<Item, Result>[] = [];
    for (const queued of queue) {
      const owner = ownerOf(queued.item);
      if (taken.length < sizeMax && !owners.has(owner)) taken.push(queued);
      else left.push(queued);
      owners.add(owner);
    }
    queue.splice(0, queue.length, ...left);
    return taken;
  }

  async #runOne(key: string, batch: Queued<Item, Result>[]): Promise<void> {
    const startedAtMs = performance.now();
    try {
      const results = await this.#settings.run(
        key,
        batch.map(({ item }) => item),
      );
      if (results.length !== batch.length) throw new Error(`${results.length} results of ${batch.length} items`);
      batch.forEach(({ resolve }, index) => resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#settings.onBatch?.(batch.length, performance.now() - startedAtMs);
  }
}
