import { awakeClock, PublicError } from '@callplane/core';
import { WAIT_MS_MAX, WAITING_MAX } from './shared-statements.js';

/** Maximum number of lists of an environment that wait for their turn. */
export const LISTS_WAITING_MAX = WAITING_MAX.ofTenant;

/** The lists of one environment: how many run, and the functions that begin those that wait. */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Bounds how many connections for reads the lists of one environment use at once. A list may read for seconds, and the
 * rate limits count requests only: one environment could keep all connections from the others.
 */
export class ListTurns {
  readonly #ofAll: number;
  readonly #ofEnvironment: number;
  readonly #waitMsMax: number;
  /** The environments with lists that run or wait, in the order of their turns. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  #waiting = 0;

  /** @param connections of the pool for reads. Lists leave one for other reads, and an environment gets half of them. */
  constructor(connections: number, waitMsMax = WAIT_MS_MAX) {
    this.#ofAll = Math.max(1, connections - 1);
    this.#ofEnvironment = Math.ceil(connections / 2);
    this.#waitMsMax = waitMsMax;
  }

  /**
   * Runs a list, in its turn if too many run.
   * @throws PublicError RATE_LIMITED if too many lists of the environment wait, or this one has waited too long.
   */
  async run<T>(environmentId: string, list: () => Promise<T>): Promise<T> {
    let line = this.#lines.get(environmentId);
    if (line === undefined) this.#lines.set(environmentId, (line = { running: 0, waiting: [] }));
    if (this.#mayBegin(line)) this.#begin(line);
    else await this.#turn(environmentId, line);
    try {
      return await list();
    } finally {
      line.running -= 1;
      this.#running -= 1;
      this.#tidy(environmentId, line);
      if (this.#waiting > 0) this.#beginNext();
    }
  }

  #mayBegin({ running }: Line): boolean {
    return this.#running < this.#ofAll && running < this.#ofEnvironment;
  }

  #begin(line: Line): void {
    line.running += 1;
    this.#running += 1;
  }

  #turn(environmentId: string, line: Line): Promise<void> {
    if (line.waiting.length >= LISTS_WAITING_MAX) throw tooMany();
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        inTime();
        resolve();
      };
      const inTime = awakeClock().after(this.#waitMsMax, () => {
        line.waiting.splice(line.waiting.indexOf(begin), 1);
        this.#waiting -= 1;
        this.#tidy(environmentId, line);
        reject(tooMany());
      });
      line.waiting.push(begin);
      this.#waiting += 1;
    });
  }

  /** Environments take turns. */
  #beginNext(): void {
    for (const [environmentId, line] of this.#lines) {
      if (!this.#mayBegin(line)) continue;
      const begin = line.waiting.shift();
      if (begin === undefined) continue;
      this.#waiting -= 1;
      this.#begin(line);
      this.#lines.delete(environmentId);
      this.#lines.set(environmentId, line);
      begin();
      return;
    }
  }

  #tidy(environmentId: string, { running, waiting }: Line): void {
    if (running === 0 && waiting.length === 0) this.#lines.delete(environmentId);
  }
}

function tooMany(): PublicError {
  return new PublicError('RATE_LIMITED', {
    message: 'Too many lists of this environment wait for the database. See Retry-After.',
    headers: { 'retry-after': '1' },
  });
}
