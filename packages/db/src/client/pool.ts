import pg from 'pg';
import { connectionClass, type Connection, type ConnectionRules } from './connection.js';
import type { Hosts } from './hosts.js';
import type { Repeat } from './transactions.js';

interface PoolRules extends ConnectionRules {
  /** Until a caller has a connection, new or idle, in milliseconds. */
  readonly connectMs: number;
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

  constructor(
    config: Omit<pg.PoolConfig, 'Client' | 'connectionTimeoutMillis' | 'query_timeout'>,
    hosts: Hosts,
    { connectMs, repeat, ...rules }: PoolRules,
  ) {
    const refusals = new WeakSet<Error>();
    const Client = connectionClass(hosts, rules, refusals);
    super({ ...config, Client, connectionTimeoutMillis: connectMs });
    this.#connectMs = connectMs;
    this.#hosts = hosts;
    this.#refusals = refusals;
    this.#repeat = repeat;
  }

  /** A statement outside of transactions, which is a transaction itself. */
  override query(...args: unknown[]): never {
    const once = (): PromiseLike<unknown> => (super.query as Query).call(this, ...args) as PromiseLike<unknown>;
    return (typeof args.at(-1) === 'function' ? once() : this.#repeat(once)) as never;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<pg.PoolClient> | undefined {
    if (callback === undefined) {
      return new Promise((resolve, reject) => {
        this.connect((error, client) => {
          if (client === undefined) reject(error ?? new Error('no connection'));
          else resolve(client);
        });
      });
    }
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
        if (isRefused && otherHosts > 0 && isInTime) attempt(otherHosts - 1);
        else callback(error, client, release);
      });
    };
    attempt(this.#hosts.count - 1);
    return undefined;
  }
}
