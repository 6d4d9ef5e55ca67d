import { rateLimited } from '@callplane/core';
import { FairQueue, KeyedBound } from '@callplane/runtime';
import { WAIT_MS_MAX, WAITING_MAX } from './shared-statements.js';

interface Waiting {
  connections: number;
  begin: () => void;
  refuse: () => void;
}

/**
 * Limits how many connections the lists of one environment use at once. A list may read for seconds, and the rate limits
 * count requests only: one environment could keep all connections from the others. A heavy read, whose cost grows with
 * the rows of the environment, takes more than half of the environment's connections, so one runs at a time.
 */
export class ReadLimiter {
  readonly #perEnvironmentMax: number;
  readonly #heavyConnections: number;
  readonly #inUse: KeyedBound;
  readonly #waiting: FairQueue<Waiting>;

  /** @param connections of the pool for reads. One is left for other reads, and an environment gets half of them. */
  constructor(connections: number, waitMsMax = WAIT_MS_MAX) {
    this.#perEnvironmentMax = Math.ceil(connections / 2);
    this.#heavyConnections = Math.floor(this.#perEnvironmentMax / 2) + 1;
    this.#inUse = new KeyedBound({ max: Math.max(1, connections - 1), perKeyMax: this.#perEnvironmentMax });
    this.#waiting = new FairQueue({
      waitingMax: { ...WAITING_MAX, all: Infinity },
      waitMsMax,
      onExpired: ({ refuse }) => {
        refuse();
        this.#beginNext();
      },
      keepsTurn: (environmentId) => this.#inUse.heldBy(environmentId) > 0,
    });
  }

  /**
   * Runs a list, in its turn if too many reads run.
   * @throws PublicError RATE_LIMITED if too many reads of the environment wait, or this one has waited too long.
   */
  list<T>(environmentId: string, read: () => Promise<T>): Promise<T> {
    return this.#run(environmentId, 1, read);
  }

  /** {@link list} for a read of all rows of the environment. */
  heavy<T>(environmentId: string, read: () => Promise<T>): Promise<T> {
    return this.#run(environmentId, this.#heavyConnections, read);
  }

  #run<T>(environmentId: string, connections: number, read: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const begin = async (): Promise<T> => {
        try {
          return await read();
        } finally {
          this.#inUse.add(environmentId, -connections);
          this.#beginNext();
        }
      };
      const refuse = (): void => reject(tooMany());
      const refusal = this.#waiting.push(environmentId, { connections, begin: () => resolve(begin()), refuse });
      if (refusal === null) this.#beginNext();
      else refuse();
    });
  }

  /**
   * Begins every read that has a connection. Environments take turns: one that has begun a read comes after the others. If
   * the next read needs more connections than are free, the ones after it wait. Otherwise lists could keep a heavy read
   * from its turn.
   */
  #beginNext(): void {
    const begun = this.#waiting.take((environmentId, { connections }) => {
      if (this.#inUse.heldBy(environmentId) + connections > this.#perEnvironmentMax) return 'skip';
      if (!this.#inUse.allows(environmentId, connections)) return 'stop';
      this.#inUse.add(environmentId, connections);
      return 'take';
    });
    for (const { begin } of begun) begin();
  }
}

function tooMany(): Error {
  return rateLimited('Too many lists and counts of this environment wait for the database. See Retry-After.');
}
