import { Batches } from '@callplane/runtime';
import pLimit from 'p-limit';
import { WAIT_MS_MAX } from './shared-statements.js';

/** How many heavy reads a process runs at once; of one environment it is one. */
export const HEAVY_READS_AT_ONCE = 2;
/** Maximum number of different heavy reads of an environment that wait. */
export const HEAVY_READS_WAITING_MAX = 20;

/**
 * Reads whose cost grows with the rows of an environment. The rate limits count requests, so without a bound of their
 * own, the reads of one key could take all connections and the whole processor of PostgreSQL.
 */
export class HeavyReads {
  /** Reads that have not begun. A request may share such a read: it sees all that was written before the request. */
  readonly #waiting = new Map<string, Promise<unknown>>();
  readonly #turns = new Batches<() => Promise<unknown>, unknown>({
    run: async (_environmentId, reads) => Promise.all(reads.map((read) => read())),
    sizeMax: 1,
    turns: pLimit(HEAVY_READS_AT_ONCE),
    waitingMax: { all: HEAVY_READS_WAITING_MAX, ofTenant: HEAVY_READS_WAITING_MAX },
    waitMsMax: WAIT_MS_MAX,
  });

  /**
   * Runs a read in its turn. Requests for the same thing that wait share it.
   * @param what identifies the read and everything that decides its result, apart from the environment.
   * @throws OverloadedError if too many reads of the environment wait, or the read has waited too long.
   */
  read<T>(environmentId: string, what: string, read: () => Promise<T>): Promise<T> {
    const key = `${environmentId} ${what}`;
    const shared = this.#waiting.get(key) ?? this.#add(environmentId, key, read);
    return shared as Promise<T>;
  }

  #add(environmentId: string, key: string, read: () => Promise<unknown>): Promise<unknown> {
    const begin = (): Promise<unknown> => {
      this.#waiting.delete(key);
      return read();
    };
    const added = this.#turns.add(environmentId, begin).finally(() => {
      // The read was refused, or has waited too long.
      if (this.#waiting.get(key) === added) this.#waiting.delete(key);
    });
    this.#waiting.set(key, added);
    return added;
  }
}
