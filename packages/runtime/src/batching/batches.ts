import { FairQueue, type FairQueueSettings } from '../fairness/fair-queue.js';

/** Limits how much work runs at once, e.g. `pLimit`. */
export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

export interface BatchSettings<Item, Result> extends Pick<FairQueueSettings<Item>, 'waitingMax' | 'waitMsMax'> {
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
  /**
   * Runs a batch. The results are in the order of the items. One that is a promise does not delay the next batch. If
   * `run` rejects, all items of the batch are rejected, or run alone (`runsAlone`).
   */
  run(key: string, items: Item[]): Promise<readonly (Result | Promise<Result>)[]>;
  sizeMax: number;
  /** How many batches of a key run at once. Default: 1. */
  atOnce?: number;
  /** Limits how many batches run at once, over all keys. A batch that waits for its turn keeps filling. */
  limit?: Limit;
  /**
   * Whether the items of a batch of several that failed with this error run again, each in a batch of its own, so that
   * a bad item fails alone. The failed batch must have changed nothing.
   */
  runsAlone?(error: unknown): boolean;
  onBatch?(size: number, durationMs: number): void;
}

/** The key of batches whose items all share one queue, and of items without tenants and owners. */
export const ONE_QUEUE = '';

const ALONE_AT_ONCE = 4;

/** An item could not be added, or waited too long: more work arrives than `run` completes. */
export class OverloadedError extends Error {
  constructor(reason: string) {
    super(`too much work waits for its batch: ${reason}`);
  }
}

interface Queued<Item, Result> {
  item: Item;
  resolve: (result: Result | Promise<Result>) => void;
  reject: (error: unknown) => void;
}

/** The items and batches of one key. */
interface Work<Item, Result> {
  queue: FairQueue<Queued<Item, Result>>;
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
  readonly #queueSettings: FairQueueSettings<Queued<Item, Result>>;
  /** The keys with an item that waits or runs. */
  readonly #work = new Map<string, Work<Item, Result>>();

  constructor(private readonly settings: BatchSettings<Item, Result>) {
    const { waitingMax, waitMsMax } = settings;
    this.#queueSettings = {
      waitingMax,
      waitMsMax,
      onExpired: ({ reject }) => reject(new OverloadedError(`for ${waitMsMax} ms`)),
    };
  }

  get waiting(): number {
    let sum = 0;
    for (const { queue } of this.#work.values()) sum += queue.size;
    return sum;
  }

  /**
   * Resolves with the item's own result.
   * @throws OverloadedError if too many items wait, or the item has waited too long.
   */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      let work = this.#work.get(key);
      if (work === undefined) {
        work = { queue: new FairQueue(this.#queueSettings), running: 0, isStarting: false };
        this.#work.set(key, work);
      }
      const { ownerOf, tenantOf, atOnce = 1 } = this.settings;
      const refusal = work.queue.push((ownerOf ?? tenantOf)?.(item) ?? ONE_QUEUE, { item, resolve, reject });
      if (refusal !== null) {
        reject(new OverloadedError(refusal));
        return;
      }
      if (work.running < atOnce && !work.isStarting) {
        work.isStarting = true;
        setImmediate(() => this.#start(key, work));
      }
    });
  }

  #start(key: string, work: Work<Item, Result>): void {
    work.isStarting = false;
    work.running += 1;
    void this.#drain(key, work);
  }

  /** Never rejects. */
  async #drain(key: string, work: Work<Item, Result>): Promise<void> {
    const { limit = (run) => run() } = this.settings;
    while (work.queue.size > 0) {
      await limit(async () => {
        const batch = this.#take(work.queue);
        // Another drain may have taken the items meanwhile.
        if (batch.length > 0) await this.#runAll(key, batch);
      });
    }
    // In the same tick as the last look at the queue, so that no item is added between and finds a running batch.
    work.running -= 1;
    if (work.running === 0 && !work.isStarting) this.#work.delete(key);
  }

  #take(queue: FairQueue<Queued<Item, Result>>): Queued<Item, Result>[] {
    const { sizeMax, ownerOf } = this.settings;
    const owners = new Set<string>();
    let size = 0;
    return queue.take((owner) => {
      if (size === sizeMax) return 'stop';
      if (owners.has(owner)) return 'skip';
      if (ownerOf !== undefined) owners.add(owner);
      size += 1;
      return 'take';
    });
  }

  async #runAll(key: string, batch: Queued<Item, Result>[]): Promise<void> {
    const failure = await this.#run(key, batch);
    if (failure === null) return;
    if (batch.length === 1 || this.settings.runsAlone?.(failure.error) !== true) {
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
      const results = await this.settings.run(
        key,
        batch.map(({ item }) => item),
      );
      if (results.length !== batch.length) throw new Error(`${results.length} results of ${batch.length} items`);
      batch.forEach(({ resolve }, index) => resolve(results[index] as Result | Promise<Result>));
      return null;
    } catch (error) {
      return { error };
    } finally {
      this.settings.onBatch?.(batch.length, performance.now() - startedAtMs);
    }
  }
}
