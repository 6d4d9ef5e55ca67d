import pg from 'pg';
import type { AwakeClock } from './awake-clock.js';

type Connected = Parameters<pg.Pool['connect']>[0];
type Query = (...asked: unknown[]) => unknown;

/**
 * A pool whose deadlines count only the time in which this process ran. node-postgres's own fire as soon as a process
 * that stood still goes on, though the answers lie in its sockets.
 */
export class Pool extends pg.Pool {
  readonly #awake: AwakeClock;
  readonly #connectMs: number;

  /**
   * @param deadlines in milliseconds. `connectMs`: until somebody has a connection, new or free; `answerMs`: until a
   *   statement has its answer.
   */
  constructor(
    config: Omit<pg.PoolConfig, 'Client' | 'connectionTimeoutMillis' | 'query_timeout'>,
    deadlines: { connectMs: number; answerMs: number },
    awake: AwakeClock,
  ) {
    const Client = connectionClass(awake, deadlines.answerMs);
    super({ ...config, Client, connectionTimeoutMillis: deadlines.connectMs });
    this.#awake = awake;
    this.#connectMs = deadlines.connectMs;
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
    const askedAtMs = this.#awake.nowMs;
    const ask = (): void => {
      const { stoodMs } = this.#awake;
      super.connect((error, client, release) => {
        // Nothing was sent yet, so whoever waited while the process stood still may as well queue up again.
        const stood = this.#awake.stoodMs > stoodMs;
        if (error !== undefined && stood && this.#awake.nowMs - askedAtMs < this.#connectMs) ask();
        else callback(error, client, release);
      });
    };
    ask();
    return undefined;
  }
}

/** Connections that end when a statement has no answer in time: nothing that is asked behind it would have one either. */
function connectionClass(awake: AwakeClock, answerMs: number): typeof pg.Client {
  return class extends pg.Client {
    // All the ways to call it are node-postgres's: with a callback, which comes last, or for a promise.
    override query(...asked: unknown[]): never {
      const answered = awake.after(answerMs, () => void this.end());
      const callback = asked.at(-1);
      if (typeof callback === 'function') {
        asked[asked.length - 1] = (...answer: unknown[]): void => {
          answered();
          (callback as Query)(...answer);
        };
      }
      const result = (super.query as Query).apply(this, asked);
      if (result instanceof Promise) result.then(answered, answered);
      return result as never;
    }
  };
}
