import type { AwakeClock } from '@callplane/core';
import pg from 'pg';
import { connectionClass, type Connection, type ConnectionRules, type Refusals } from './connection.js';
import type { Hosts } from './hosts.js';

type Connected = Parameters<pg.Pool['connect']>[0];

/**
 * A pool whose deadlines count only the time in which this process ran. node-postgres's own deadlines fire as soon as a
 * paused process resumes, although the responses wait in its sockets. A caller gets a connection to any of the hosts.
 */
export class Pool extends pg.Pool {
  readonly #awake: AwakeClock;
  readonly #connectMs: number;
  readonly #hosts: Hosts;
  readonly #refusals: Refusals;

  /** @param connectMs until a caller has a connection, new or idle, in milliseconds. */
  constructor(
    config: Omit<pg.PoolConfig, 'Client' | 'connectionTimeoutMillis' | 'query_timeout'>,
    hosts: Hosts,
    { connectMs, ...rules }: ConnectionRules & { connectMs: number },
    awake: AwakeClock,
  ) {
    const refusals: Refusals = new WeakSet();
    const Client = connectionClass(hosts, awake, rules, refusals);
    super({ ...config, Client, connectionTimeoutMillis: connectMs });
    this.#awake = awake;
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
    const startedAtMs = this.#awake.nowMs;
    const attempt = (otherHosts: number): void => {
      const { stoodMs } = this.#awake;
      super.connect((error, client, release) => {
        if (error === undefined && (client as Connection).isStale) {
          release(true);
          attempt(otherHosts);
          return;
        }
        // Nothing was sent yet, so a caller that waited while the process was paused can safely queue again.
        const stood = this.#awake.stoodMs > stoodMs;
        const isRefused = error !== undefined && otherHosts > 0 && this.#refusals.has(error);
        const isInTime = this.#awake.nowMs - startedAtMs < this.#connectMs;
        if (error !== undefined && (stood || isRefused) && isInTime) attempt(isRefused ? otherHosts - 1 : otherHosts);
        else callback(error, client, release);
      });
    };
    attempt(this.#hosts.count - 1);
    return undefined;
  }
}
