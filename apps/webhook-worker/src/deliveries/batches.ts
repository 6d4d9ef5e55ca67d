import { setTimeout as delay } from 'node:timers/promises';

/**
 * One result for each, in the same order. What takes longer for one alone may be a promise, for which no other waits. What
 * it throws becomes the result of each.
 */
type Work<In, Out> = (batch: readonly In[]) => Promise<readonly (Out | Promise<Out>)[]>;

interface Asked<In, Out> {
  item: In;
  resolve(result: Out | Promise<Out>): void;
  reject(error: unknown): void;
}

/**
 * Does many of the same at once: one batch is under way at a time, and whatever is asked meanwhile shares the next. What
 * is asked while none is under way begins at the end of this turn of the event loop, with what else comes in it. After a
 * batch of several the next one may linger for company: then there is a queue, and larger batches cost less.
 */
export class Batches<In, Out> {
  readonly #work: Work<In, Out>;
  readonly #max: number;
  readonly #lingerMs: number;
  #asked: Asked<In, Out>[] = [];
  #isWorking = false;

  constructor(work: Work<In, Out>, { max, lingerMs }: { max: number; lingerMs: number }) {
    this.#work = work;
    this.#max = max;
    this.#lingerMs = lingerMs;
  }

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ item, resolve, reject });
      if (this.#isWorking) return;
      this.#isWorking = true;
      setImmediate(() => void this.#workOnAll());
    });
  }

  async #workOnAll(): Promise<void> {
    let lastSize = 1;
    while (this.#asked.length > 0) {
      if (this.#lingerMs > 0 && lastSize > 1 && this.#asked.length < this.#max) await delay(this.#lingerMs);
      const batch = this.#asked.splice(0, this.#max);
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
