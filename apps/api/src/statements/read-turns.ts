import { PublicError } from '@callplane/core';
import { WAIT_MS_MAX, WAITING_MAX } from './shared-statements.js';

/** Maximum number of lists and heavy reads of an environment that wait for their turn. */
export const READS_WAITING_MAX = WAITING_MAX.ofTenant;

interface Waiting {
  places: number;
  hasBegun: boolean;
  begin: () => void;
}

/** The reads of one environment: the number of held places, and the waiting reads, oldest first. */
interface Line {
  held: number;
  readonly waiting: Waiting[];
}

/**
 * Bounds how many connections for reads the lists of one environment use at once. A list may read for seconds, and the
 * rate limits count requests only: one environment could keep all connections from the others. A heavy read, whose cost
 * grows with the rows of the environment, takes more than half of the environment's places, so one runs at a time.
 */
export class ReadTurns {
  readonly #places: number;
  readonly #placesOfEnvironment: number;
  readonly #placesOfHeavy: number;
  readonly #waitMsMax: number;
  /** The environments with reads that run or wait, in the order of their turns. */
  readonly #lines = new Map<string, Line>();
  #held = 0;

  /** @param connections of the pool for reads. One is left for other reads, and an environment gets half of them. */
  constructor(connections: number, waitMsMax = WAIT_MS_MAX) {
    this.#places = Math.max(1, connections - 1);
    this.#placesOfEnvironment = Math.ceil(connections / 2);
    this.#placesOfHeavy = Math.floor(this.#placesOfEnvironment / 2) + 1;
    this.#waitMsMax = waitMsMax;
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
    return this.#run(environmentId, this.#placesOfHeavy, read);
  }

  async #run<T>(environmentId: string, places: number, read: () => Promise<T>): Promise<T> {
    let line = this.#lines.get(environmentId);
    if (line === undefined) this.#lines.set(environmentId, (line = { held: 0, waiting: [] }));
    const turn = this.#turn(line, places);
    if (turn !== null) await turn;
    try {
      return await read();
    } finally {
      line.held -= places;
      this.#held -= places;
      this.#beginNext();
    }
  }

  /** Null: the read begins at once. */
  #turn(line: Line, places: number): Promise<void> | null {
    if (line.waiting.length >= READS_WAITING_MAX) throw tooMany();
    const waiting: Waiting = { places, hasBegun: false, begin: () => undefined };
    line.waiting.push(waiting);
    this.#beginNext();
    if (waiting.hasBegun) return null;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(waiting), 1);
        reject(tooMany());
        this.#beginNext();
      }, this.#waitMsMax);
      waiting.begin = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * Begins every read that has room. Environments take turns: one that has begun a read comes after the others. If the
   * next one needs more places than are free, those after it wait, so that lists do not keep a heavy read from its turn.
   */
  #beginNext(): void {
    for (const [environmentId, line] of this.#lines) {
      const [next] = line.waiting;
      if (next === undefined) {
        if (line.held === 0) this.#lines.delete(environmentId);
        continue;
      }
      if (line.held + next.places > this.#placesOfEnvironment) continue;
      if (this.#held + next.places > this.#places) return;
      line.waiting.shift();
      line.held += next.places;
      this.#held += next.places;
      this.#lines.delete(environmentId);
      this.#lines.set(environmentId, line);
      next.hasBegun = true;
      next.begin();
    }
  }
}

function tooMany(): PublicError {
  return new PublicError('RATE_LIMITED', {
    message: 'Too many lists and counts of this environment wait for the database. See Retry-After.',
    headers: { 'retry-after': '1' },
  });
}
