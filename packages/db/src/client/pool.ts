import pg from 'pg';
import type { AwakeClock } from './awake-clock.js';
import { isReadOnlySession, UnfitServerError } from './unavailable.js';

/**
 * Minimum age of a connection that is replaced for being read-only, in milliseconds. While the server itself is
 * read-only, replacing every connection that refuses a write would only add work.
 */
const READ_ONLY_REPLACED_AFTER_MS = 2000;

const IS_STANDBY = 'SELECT pg_is_in_recovery() AS "isStandby"';

type Connected = Parameters<pg.Pool['connect']>[0];
type Query = (...args: unknown[]) => unknown;
/** PostgreSQL reports some settings when a session begins. */
type Reporting = Pick<NodeJS.EventEmitter, 'on'>;
type Reported = { parameterName: string; parameterValue: string };

/**
 * A pool whose deadlines count only the time in which this process ran. node-postgres's own deadlines fire as soon as a
 * paused process resumes, although the responses wait in its sockets.
 */
export class Pool extends pg.Pool {
  readonly #awake: AwakeClock;
  readonly #connectMs: number;

  /**
   * @param deadlines in milliseconds. `connectMs`: until a caller has a connection, new or idle; `answerMs`: until a
   * statement has its result.
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
    const startedAtMs = this.#awake.nowMs;
    const attempt = (): void => {
      const { stoodMs } = this.#awake;
      super.connect((error, client, release) => {
        // Nothing was sent yet, so a caller that waited while the process was paused can safely queue again.
        const stood = this.#awake.stoodMs > stoodMs;
        if (error !== undefined && stood && this.#awake.nowMs - startedAtMs < this.#connectMs) attempt();
        else callback(error, client, release);
      });
    };
    attempt();
    return undefined;
  }
}

/**
 * Connections that close when a statement gets no result in time: the statements queued behind it would get none
 * either. They also close when the session turns out to be read-only. It may stay read-only after a failover, while a
 * new connection reaches the server that accepts writes. A standby is refused at once: its rows may be old, so that a
 * read would answer 404 for a room that exists. The session's parameter `in_hot_standby` only gives the hint to ask:
 * after a failover PgBouncer may report the value that it remembers of the server before.
 *
 * The failure of a connection rejects its statement and makes the pool replace it. Callers may therefore take a
 * connection without listening for its `error`. Between the pool's own listener and a caller's there is a gap: one read
 * of the socket can hold both the end of a statement, which gives the connection to the next caller, and the failure.
 */
function connectionClass(awake: AwakeClock, answerMs: number): typeof pg.Client {
  return class extends pg.Client {
    readonly #openedAtMs = awake.nowMs;
    #mayBeStandby = false;

    constructor(config?: string | pg.ClientConfig) {
      super(config);
      // An emitter without a listener would throw the error, and end the process.
      this.on('error', () => undefined);
      const { connection } = this as unknown as { connection: Reporting };
      connection.on('parameterStatus', ({ parameterName, parameterValue }: Reported) => {
        if (parameterName === 'in_hot_standby') this.#mayBeStandby = parameterValue === 'on';
      });
    }

    override connect(): Promise<this>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<this> | undefined {
      if (callback === undefined) {
        return new Promise((resolve, reject) => {
          this.connect((error: Error | null) => (error === null ? resolve(this) : reject(error)));
        });
      }
      super.connect((error: Error | null | undefined) => {
        if (error || !this.#mayBeStandby) callback(error as Error);
        else this.#refuseStandby(callback);
      });
      return undefined;
    }

    /** The pool's deadline of a new connection also limits this statement. */
    #refuseStandby(callback: (error: Error) => void): void {
      super.query<{ isStandby: boolean }>(IS_STANDBY, (error: Error | null | undefined, result) => {
        const refusal = error ?? (result.rows[0]?.isStandby === false ? null : new UnfitServerError('read-only'));
        if (refusal !== null) void this.end();
        callback(refusal as Error);
      });
    }

    // Supports all signatures of node-postgres: with a callback as the last argument, or returning a promise.
    override query(...args: unknown[]): never {
      const answered = awake.after(answerMs, () => void this.end());
      const callback = args.at(-1);
      if (typeof callback === 'function') {
        args[args.length - 1] = (...answer: unknown[]): void => {
          answered();
          this.#endIfReadOnly(answer[0]);
          (callback as Query)(...answer);
        };
      }
      const result = (super.query as Query).apply(this, args);
      if (result instanceof Promise) {
        result.then(answered, (error: unknown) => {
          answered();
          this.#endIfReadOnly(error);
        });
      }
      return result as never;
    }

    #endIfReadOnly(error: unknown): void {
      const ageMs = awake.nowMs - this.#openedAtMs;
      if (isReadOnlySession(error) && ageMs >= READ_ONLY_REPLACED_AFTER_MS) void this.end();
    }
  };
}
