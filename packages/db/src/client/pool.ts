import pg from 'pg';
import { connectionClass, type Connection, type ConnectionRules, type Refusals } from './connection.js';
import type { Hosts } from './hosts.js';

type Connected = Parameters<pg.Pool['connect']>[0];

/** A pool whose callers get a connection to any of the hosts. */
export class Pool extends pg.Pool {
  readonly #connectMs: number;
  readonly #hosts: Hosts;
  readonly #refusals: Refusals;

  /** @param connectMs until a caller has a connection, new or idle, in milliseconds. */
  constructor(
    config: Omit<pg.PoolConfig, 'Client' | 'connectionTimeoutMillis' | 'query_timeout'>,
    hosts: Hosts,
    { connectMs, ...rules }: ConnectionRules & { connectMs: number },
  ) {
    const refusals: Refusals = new WeakSet();
    const Client = connectionClass(hosts, rules, refusals);
    super({ ...config, Client, connectionTimeoutMillis: connectMs });
    this.#connectMs = connectMs;
    this.#hosts = hosts;
    this.#refusals = refusals;
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
