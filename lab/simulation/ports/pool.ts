import pg from 'pg';
import { running, type SimProcess } from '../processes.js';
import type { Gate, Query, SimClient } from './gate.js';

let current: Gate | undefined;
export function useGate(gate: Gate): void {
  current = gate;
}

interface Config {
  max?: number;
  options?: string;
}
type Connected = (error: Error | undefined, client: SimClient | undefined, release: () => void) => void;

/** Takes the place of packages/db/src/client/pool.ts: connections whose statements wait for the scheduler. */
export class Pool extends pg.Pool {
  readonly #owner: SimProcess | undefined = running.getStore();
  readonly #max: number;
  readonly #kind: string;
  readonly #idle: SimClient[] = [];
  readonly #waiting: ((client: SimClient) => void)[] = [];
  #count = 0;

  constructor(config: Config) {
    super({});
    this.#max = config.max ?? 10;
    this.#kind = config.options ?? '';
    this.#owner?.pools.push(this);
  }

  override connect(callback?: unknown): never {
    // A pool without an owner belongs to the shared client of Prisma.
    const target = this.#owner === undefined ? (running.getStore()?.pools[0] as Pool | undefined) : this;
    if (target === undefined) throw new Error('no simulated process runs');
    const client = target.#take();
    if (typeof callback !== 'function') return client as never;
    void client.then((one) => (callback as Connected)(undefined, one, () => one.release()));
    return undefined as never;
  }

  override query(query: unknown, values?: unknown): never {
    const run = async (): Promise<unknown> => {
      const client = await (this.connect() as Promise<SimClient>);
      try {
        return await client.query(query as Query, values as unknown[] | undefined);
      } finally {
        client.release();
      }
    };
    return run() as never;
  }

  #take(): Promise<SimClient> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return Promise.resolve(idle);
    if (this.#count >= this.#max) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#count += 1;
    return Promise.resolve(this.#new());
  }

  #new(): SimClient {
    if (current === undefined || this.#owner === undefined) throw new Error('no simulation runs');
    return current.open(this.#owner, this.#kind, (client, isLost) => this.#released(client, isLost));
  }

  #released(client: SimClient, isLost: boolean): void {
    const next = this.#waiting.shift();
    if (isLost) {
      this.#count -= 1;
      if (next === undefined) return;
      this.#count += 1;
      next(this.#new());
    } else if (next === undefined) this.#idle.push(client);
    else next(client);
  }
}
