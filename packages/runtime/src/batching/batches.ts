/** Runs work when its turn comes, e.g. `pLimit`. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

interface QueueSettings<Item> {
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

export interface BatchSettings<Item, Result> extends QueueSettings<Item> {
  /**
   * Runs a batch. The results are in the order of the items. One that is a promise does not delay the next batch. If
   * `run` rejects, all items of the batch are rejected, or run alone (`runsAlone`).
   */
  run(key: string, items: Item[]): Promise<readonly (Result | Promise<Result>)[]>;
  sizeMax: number;
  /** How many batches of a key run at once. Default: 1. */
  atOnce?: number;
  /** Limits how many batches run at once, over all keys. A batch that waits for its turn keeps filling. */
  turns?: Turns;
  /**
   * Whether the items of a batch of several that failed with this error run again, each in a batch of its own, so that
   * a bad item fails alone. The failed batch must have changed nothing.
   */
  runsAlone?(error: unknown): boolean;
  /** How long an item waits for its batch to start, in milliseconds. After that it is rejected. Default: no limit. */
  waitMsMax?: number;
  onBatch?(size: number, durationMs: number): void;
}

/** The key of batches whose items all share one queue, and the line of items without tenants and owners. */
export const ONE_QUEUE = '';

const ALONE_AT_ONCE = 4;

/** An item could not be added, or waited too long: more work arrives than `run` completes. */
export class OverloadedError extends Error {
  constructor(reason: string) {
    super(`too much work waits for its batch: ${reason}`);
  }
}

interface Line<Item, Result> {
  queue: BatchQueue<Item, Result>;
  running: number;
  /** Whether a batch starts at the end of the current event-loop tick. */
  isStarting: boolean;
}

/**
 * Items of a key run together, as many as have come while the batches before them ran. If fewer than `atOnce` batches of
 * the key are running, one starts at the end of the current event-loop tick, with everything queued by then.
 * So a lone item waits for nothing, and batches grow with the load: under load, many callers share one statement, and
 * with it the round trip, the commit and the work of the driver.
 */
export class Batches<Item, Result> {
  readonly #settings: BatchSettings<Item, Result>;
  /** The keys with an item that waits or runs. */
  readonly #lines = new Map<string, Line<Item, Result>>();

  constructor(settings: BatchSettings<Item, Result>) {
    this.#settings = settings;
  }

  get waiting(): number {
    let sum = 0;
    for (const { queue } of this.#lines.values()) sum += queue.size;
    return sum;
  }

  /**
   * Resolves with the item's own result.
   * @throws OverloadedError if too many items wait, or the item has waited too long.
   */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      let line = this.#lines.get(key);
      if (line === undefined) {
        line = { queue: new BatchQueue(this.#settings), running: 0, isStarting: false };
        this.#lines.set(key, line);
      }
      const { queue } = line;
      const queued: Queued<Item, Result> = { item, resolve, reject };
      const refusal = queue.push(queued);
      if (refusal !== null) {
        reject(new OverloadedError(refusal));
        return;
      }
      const { atOnce = 1, waitMsMax } = this.#settings;
      if (waitMsMax !== undefined) {
        const expire = (): void => {
          if (queue.remove(queued)) reject(new OverloadedError(`for ${waitMsMax} ms`));
        };
        // Not in the timer itself: after a pause of the process, Node fires timers before it reads the answers of
        // PostgreSQL, and the answer of one batch starts the next.
        queued.timer = setTimeout(() => setImmediate(expire), waitMsMax);
      }
      if (line.running < atOnce && !line.isStarting) {
        line.isStarting = true;
        setImmediate(() => this.#start(key, line));
      }
    });
  }

  #start(key: string, line: Line<Item, Result>): void {
    line.isStarting = false;
    line.running += 1;
    void this.#drain(key, line);
  }

  /** Never rejects. */
  async #drain(key: string, line: Line<Item, Result>): Promise<void> {
    const { queue } = line;
    const { sizeMax, turns = (work) => work() } = this.#settings;
    while (queue.size > 0) {
      await turns(async () => {
        const batch = queue.take(sizeMax);
        // Another drain may have taken the items meanwhile.
        if (batch.length > 0) await this.#runAll(key, batch);
      });
    }
    // In the same tick as the last look at the queue, so that no item is added between and finds a running batch.
    line.running -= 1;
    if (line.running === 0 && !line.isStarting) this.#lines.delete(key);
  }

  async #runAll(key: string, batch: Queued<Item, Result>[]): Promise<void> {
    const failure = await this.#run(key, batch);
    if (failure === null) return;
    if (batch.length === 1 || this.#settings.runsAlone?.(failure.error) !== true) {
      for (const { reject } of batch) reject(failure.error);
      return;
    }
    const left = batch.values();
    const runNext = async (): Promise<void> => {
      for (const queued of left) {
        const alone = await this.#run(key, [queued]);
        if (alone !== null) queued.reject(alone.error);
      }
    };
    await Promise.all(Array.from({ length: ALONE_AT_ONCE }, runNext));
  }

  /** @returns null if each item has its result. */
  async #run(key: string, batch: readonly Queued<Item, Result>[]): Promise<{ error: unknown } | null> {
    const startedAtMs = performance.now();
    try {
      const results = await this.#settings.run(
        key,
        batch.map(({ item }) => item),
      );
      if (results.length !== batch.length) throw new Error(`${results.length} results of ${batch.length} items`);
      batch.forEach(({ resolve }, index) => resolve(results[index] as Result | Promise<Result>));
      return null;
    } catch (error) {
      return { error };
    } finally {
      this.#settings.onBatch?.(batch.length, performance.now() - startedAtMs);
    }
  }
}

interface Queued<Item, Result> {
  item: Item;
  resolve: (result: Result | Promise<Result>) => void;
  reject: (error: unknown) => void;
  timer?: NodeJS.Timeout;
}

class BatchQueue<Item, Result> {
  readonly #settings: QueueSettings<Item>;
  /** The items of each tenant or owner, oldest first. The lines are in the order of their turns. */
  readonly #lines = new Map<string, Queued<Item, Result>[]>();
  #size = 0;

  constructor(settings: QueueSettings<Item>) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#size;
  }

  /** @returns why the item was not added, or null. */
  push(queued: Queued<Item, Result>): string | null {
    const { waitingMax } = this.#settings;
    const name = this.#nameOf(queued);
    const line = this.#lines.get(name);
    if (waitingMax !== undefined) {
      if (this.#size >= waitingMax.all) return `${waitingMax.all} items`;
      if ((line?.length ?? 0) >= waitingMax.ofTenant) return `${waitingMax.ofTenant} items of one tenant`;
    }
    if (line === undefined) this.#lines.set(name, [queued]);
    else line.push(queued);
    this.#size += 1;
    return null;
  }

  take(max: number): Queued<Item, Result>[] {
    const isOnePerOwner = this.#settings.ownerOf !== undefined;
    const taken: Queued<Item, Result>[] = [];
    const served: [string, Queued<Item, Result>[]][] = [];
    for (const [name, line] of this.#lines) {
      if (taken.length >= max) break;
      // A lone tenant fills the rest of the batch.
      const count = this.#lines.size === 1 && !isOnePerOwner ? max - taken.length : 1;
      taken.push(...line.splice(0, count));
      this.#lines.delete(name);
      if (line.length === 0) continue;
      // The loop comes to a line that is added again: a tenant gets its next turn, an owner has to wait.
      if (isOnePerOwner) served.push([name, line]);
      else this.#lines.set(name, line);
    }
    for (const [name, line] of served) this.#lines.set(name, line);
    this.#size -= taken.length;
    for (const { timer } of taken) clearTimeout(timer);
    return taken;
  }

  remove(queued: Queued<Item, Result>): boolean {
    const name = this.#nameOf(queued);
    const line = this.#lines.get(name) ?? [];
    const at = line.indexOf(queued);
    if (at === -1) return false;
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(name);
    this.#size -= 1;
    return true;
  }

  #nameOf({ item }: Queued<Item, Result>): string {
    const { ownerOf, tenantOf } = this.#settings;
    return (ownerOf ?? tenantOf)?.(item) ?? ONE_QUEUE;
  }
}
