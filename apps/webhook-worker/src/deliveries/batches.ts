import { setTimeout as delay } from 'node:timers/promises';

/**
 * Returns one result per item, in the order of the items. A result may be a promise, so that an item that takes longer
 * does not delay the others. If the function rejects, every item of the batch rejects.
 */
type Work<In, Out> = (batch: readonly In[]) => Promise<readonly (Out | Promise<Out>)[]>;

interface Queued<In, Out> {
  item: In;
  resolve(result: Out | Promise<Out>): void;
  reject(error: unknown): void;
}

/**
 * Processes items in batches. Only one batch runs at a time, and items that are added meanwhile share the next batch.
 * If no batch is running, one starts at the end of the current event-loop tick, with all items of that tick. If items
 * have queued while a batch of several ran, the next one waits `lingerMs` for more, because larger batches are cheaper.
 */
export class Batches<In, Out> {
  readonly #work: Work<In, Out>;
  readonly #max: number;
  readonly #lingerMs: number;
  #queued: Queued<In, Out>[] = [];
  #isWorking = false;

  constructor(work: Work<In, Out>, { max, lingerMs }: { max: number; lingerMs: number }) {
    this.#work = work;
    this.#max = max;
    this.#lingerMs = lingerMs;
  }

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#queued.push({ item, resolve, reject });
      if (this.#isWorking) return;
      this.#isWorking = true;
      setImmediate(() => void this.#workOnAll());
    });
  }

  async #workOnAll(): Promise<void> {
    let lastSize = 1;
    while (this.#queued.length > 0) {
      if (this.#lingerMs > 0 && lastSize > 1 && this.#queued.length < this.#max) await delay(this.#lingerMs);
      const batch = this.#queued.splice(0, this.#max);
      lastSize = batch.length;
      try {
        const results = await this.#work(batch.map(({ item }) => item));
        batch.forEach(({ resolve }, index) => resolve(results[index] as Out | Promise<Out>));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isWorking = false;
  }
}
