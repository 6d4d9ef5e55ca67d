import pg from 'pg';
import { connectionClass, type Connection, type ConnectionRules } from './connection.js';
import type { Hosts } from './hosts.js';
import type { Repeat } from './transactions.js';
import { WaitingRoom } from './waiting-room.js';

/** Callers that may wait for a PostgreSQL that is away. */
const WAITING_MAX = 1000;

interface PoolRules extends ConnectionRules {
  /** Until a caller has a connection, new or idle, in milliseconds. */
  readonly connectMs: number;
  /** How long a caller waits for a PostgreSQL that refuses connections, in milliseconds. */
  readonly waitMs: number;
  /** Runs a statement again after a conflict. */
  readonly repeat: Repeat;
}

type Query = (...args: unknown[]) => unknown;
type Connected = Parameters<pg.Pool['connect']>[0];

export class Pool extends pg.Pool {
  readonly #connectMs: number;
  readonly #hosts: Hosts;
  /** Errors of connection attempts after which another host may answer. */
  readonly #refusals: WeakSet<Error>;
  readonly #repeat: Repeat;
  readonly #waitingRoom: WaitingRoom;

  constructor(
    config: Omit<pg.PoolConfig, 'Client' | 'connectionTimeoutMillis' | 'query_timeout'>,
    hosts: Hosts,
    { connectMs, waitMs, repeat, ...rules }: PoolRules,
  ) {
    const refusals = new WeakSet<Error>();
    const Client = connectionClass(hosts, rules, refusals);
    super({ ...config, Client, connectionTimeoutMillis: connectMs });
    this.#connectMs = connectMs;
    this.#hosts = hosts;
    this.#refusals = refusals;
    this.#repeat = repeat;
    this.#waitingRoom = new WaitingRoom(waitMs, WAITING_MAX);
  }

  /** Callers without a connection: the pool has none left, or PostgreSQL is away. */
  get callersCount(): number {
    return this.waitingCount + this.#waitingRoom.count;
  }

  /** A statement outside of transactions, which is a transaction itself. */
  override query(...args: unknown[]): never {
    const once = (): PromiseLike<unknown> => (super.query as Query).call(this, ...args) as PromiseLike<unknown>;
    return (typeof args.at(-1) === 'function' ? once() : this.#repeat(once)) as never;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<pg.PoolClient> | undefined {
    if (callback === undefined) return this.#connected(true);
    this.#connect(callback, true);
    return undefined;
  }

  /** Connects without waiting for a PostgreSQL that refuses connections. */
  connectNow(): Promise<pg.PoolClient> {
    return this.#connected(false);
  }

  #connected(mayWait: boolean): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      const settle: Connected = (error, client) => {
        if (client === undefined) reject(error ?? new Error('no connection'));
        else resolve(client);
      };
      this.#connect(settle, mayWait);
    });
  }

  #connect(callback: Connected, mayWait: boolean): void {
    const startedAtMs = performance.now();
    const attempt = (otherHosts: number): void => {
      super.connect((error, client, release) => {
        if (error === undefined && (client as Connection).isStale) {
          release(true);
          attempt(otherHosts);
          return;
        }
        const isRefused = error !== undefined && this.#refusals.has(error);
        const isInTime = performance.now() - startedAtMs < this.#connectMs;
        const again = (): void => attempt(this.#hosts.count - 1);
        if (error === undefined) this.#waitingRoom.open();
        if (isRefused && otherHosts > 0 && isInTime) attempt(otherHosts - 1);
        else if (!isRefused || !mayWait || !this.#waitingRoom.wait(startedAtMs, again))
          callback(error, client, release);
      });
    };
    attempt(this.#hosts.count - 1);
  }
}
