import pg from 'pg';
import type { Hosts } from './hosts.js';
import { isDiskFull, isReadOnlySession, isRefusedLogin, UnfitServerError } from './unavailable.js';

/**
 * Minimum age of a connection that is replaced for being read-only, in milliseconds. While the server itself is
 * read-only, replacing every connection that refuses a write would only add work.
 */
const READ_ONLY_REPLACED_AFTER_MS = 2000;

const IS_STANDBY = 'SELECT pg_is_in_recovery() AS "isStandby"';
const KNOWN_SESSIONS = 'SELECT pid FROM pg_stat_activity WHERE pid = ANY($1::int[])';

type Query = (...args: unknown[]) => unknown;
/** PostgreSQL reports some settings when a session begins. */
type Reporting = Pick<NodeJS.EventEmitter, 'on'> & { readonly stream: { destroy(error?: Error): void } };
/** Fields of node-postgres's client that its types leave out. */
type Inner = { readonly connection: Reporting; readonly processID: number | null };
type Reported = { parameterName: string; parameterValue: string };

export interface ConnectionRules {
  /** Until a connection attempt to one host fails, in milliseconds. */
  readonly hostMs: number;
  /** Until a statement has its result, in milliseconds. */
  readonly answerMs: number;
  /** Called when PostgreSQL has refused a statement because its disk is full. */
  onDiskFull(): void;
}

export interface Connection extends pg.PoolClient {
  /** Whether another connection should take the place of this idle one. */
  readonly isStale: boolean;
}

/**
 * Connections to the next host of the list. They close when the session turns out to be read-only. It may stay
 * read-only after a failover, while a new connection reaches the server that accepts writes. A standby is refused at
 * once: its rows may be old, so that a read would answer 404 for a room that exists. The session's parameter
 * `in_hot_standby` only gives the hint to ask: after a failover PgBouncer may report the value that it remembers of the
 * server before.
 *
 * After a statement without an answer in time, a connection takes no further statement. Its socket stays open until the
 * answer comes, because a server whose commits wait for a standby does not notice that a client has gone
 * (docs/decisions/0007-servers-that-fail-over.md). While too many are kept, a new connection waits, or asks the
 * server whether it still knows them.
 *
 * The failure of a connection rejects its statement and makes the pool replace it. Callers may therefore take a
 * connection without listening for its `error`. Between the pool's own listener and a caller's there is a gap: one read
 * of the socket can hold both the end of a statement, which gives the connection to the next caller, and the failure.
 */
export function connectionClass(hosts: Hosts, rules: ConnectionRules, refusals: WeakSet<Error>): typeof pg.Client {
  return class extends pg.Client {
    readonly #openedAtMs = performance.now();
    readonly #owed: { readonly host: number; pid(): number | null; destroy(): void };
    #mayBeStandby = false;
    #isReadOnly = false;
    #isOverdue = false;

    constructor(config?: string | pg.ClientConfig) {
      const host = hosts.next;
      super({ ...(config as pg.ClientConfig), ...hosts.configOf(host) });
      // An emitter without a listener would throw the error, and end the process.
      this.on('error', () => undefined);
      const inner = this as unknown as Inner;
      this.#owed = { host, pid: () => inner.processID, destroy: () => inner.connection.stream.destroy() };
      this.once('end', () => hosts.forget(this.#owed));
      inner.connection.on('parameterStatus', ({ parameterName, parameterValue }: Reported) => {
        if (parameterName === 'in_hot_standby') this.#mayBeStandby = parameterValue === 'on';
        if (parameterName === 'default_transaction_read_only') this.#isReadOnly = parameterValue === 'on';
      });
    }

    get isStale(): boolean {
      return this.#isOverdue || hosts.isStale(this.#owed.host, this.#openedAtMs);
    }

    override connect(): Promise<this>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<this> | undefined {
      if (callback === undefined) {
        return new Promise((resolve, reject) => {
          this.connect((error: Error | null) => (error === null ? resolve(this) : reject(error)));
        });
      }
      const { host } = this.#owed;
      const isProbe = hosts.startProbe(host);
      let noLongerWaiting = (): void => undefined;
      let isOver = false;
      const finish = (error: Error | null): void => {
        if (isOver) return;
        isOver = true;
        clearTimeout(inTime);
        noLongerWaiting();
        if (isProbe) hosts.endProbe(host);
        if (error === null) hosts.onConnected(host);
        else {
          // After an error of our own, such as a missing password, the server would wait for us.
          this.#owed.destroy();
          if (!isRefusedLogin(error)) {
            hosts.onFailure(host);
            refusals.add(error);
          }
        }
        callback(error as Error);
      };
      const inTime = setTimeout(
        () => finish(new Error('Connection terminated: the host has not answered in time')),
        rules.hostMs,
      );
      const wait = (then: () => void): void => {
        if (!isOver) noLongerWaiting = hosts.whenFree(host, then);
      };
      this.once('end', () => finish(new Error('Connection terminated unexpectedly')));
      if (isProbe) {
        this.#open((error) => {
          if (error === null) this.#probe((failure) => (failure === null ? wait(() => finish(null)) : finish(failure)));
          else finish(error);
        });
      } else wait(() => this.#open(finish));
      return undefined;
    }

    /** Closes kept connections that the server does not know. */
    #probe(finish: (error: Error | null) => void): void {
      const { host } = this.#owed;
      const own = this.#owed.pid() ?? 0;
      const kept = hosts.keptPids(host);
      super.query<{ pid: number }>(KNOWN_SESSIONS, [[own, ...kept]], (error: Error | null | undefined, result) => {
        if (error) {
          finish(error);
          return;
        }
        const known = new Set(result.rows.map(({ pid }) => pid));
        // A pooler invents process ids of its own.
        if (known.has(own)) hosts.dropKept(host, new Set(kept.filter((pid) => !known.has(pid))));
        finish(null);
      });
    }

    #open(finish: (error: Error | null) => void): void {
      super.connect((error: Error | null | undefined) => {
        if (error) finish(error);
        // With one host, a read-only session is useful: it answers reads.
        else if (this.#isReadOnly && hosts.count > 1) this.#refuse(new UnfitServerError('read-only'), finish);
        else if (this.#mayBeStandby) this.#refuseStandby(finish);
        else finish(null);
      });
    }

    /** The deadline of the connection attempt also limits this statement. */
    #refuseStandby(finish: (error: Error | null) => void): void {
      super.query<{ isStandby: boolean }>(IS_STANDBY, (error: Error | null | undefined, result) => {
        const refusal = error ?? (result.rows[0]?.isStandby === false ? null : new UnfitServerError('read-only'));
        this.#refuse(refusal, finish);
      });
    }

    #refuse(refusal: Error | null, finish: (error: Error | null) => void): void {
      if (refusal !== null) void super.end();
      finish(refusal);
    }

    // Supports the signatures of node-postgres that are in use: with a callback as the last argument, or returning a
    // promise.
    override query(...args: unknown[]): never {
      const callback = args.at(-1);
      if (typeof callback === 'function') {
        this.#ask(args.slice(0, -1), callback as Query);
        return undefined as never;
      }
      return new Promise((resolve, reject) => {
        const settle = (error: Error | null | undefined, result: unknown): void => {
          if (error) reject(error);
          else resolve(result);
        };
        this.#ask(args, settle as Query);
      }) as never;
    }

    #ask(args: unknown[], callback: Query): void {
      if (this.#isOverdue) {
        process.nextTick(callback, noAnswer());
        return;
      }
      let isOver = false;
      const inTime = setTimeout(() => {
        isOver = true;
        this.#onSilence();
        callback(noAnswer());
      }, rules.answerMs);
      (super.query as Query).call(this, ...args, (...answer: unknown[]): void => {
        clearTimeout(inTime);
        if (isOver) {
          // The server is free again: close the connection that was kept for this answer.
          if (hosts.forget(this.#owed)) void super.end();
          return;
        }
        isOver = true;
        if (answer[0]) this.#onRefused(answer[0]);
        callback(...answer);
      });
    }

    #onSilence(): void {
      if (this.#isOverdue) return;
      this.#isOverdue = true;
      hosts.onSilence(this.#owed.host, performance.now());
      if (!hosts.keep(this.#owed)) this.#owed.destroy();
    }

    override end(): Promise<void>;
    override end(callback: (error: Error) => void): void;
    override end(callback?: (error: Error) => void): Promise<void> | undefined {
      if (hosts.isKept(this.#owed)) {
        if (callback === undefined) return Promise.resolve();
        process.nextTick(callback);
        return undefined;
      }
      if (callback === undefined) return super.end();
      super.end(callback);
      return undefined;
    }

    /** PostgreSQL has refused a statement, or the connection has failed. */
    #onRefused(error: unknown): void {
      if (isDiskFull(error)) rules.onDiskFull();
      const ageMs = performance.now() - this.#openedAtMs;
      if (isReadOnlySession(error) && ageMs >= READ_ONLY_REPLACED_AFTER_MS) void this.end();
    }
  };
}

/** Its beginning makes it an outage for {@link isDatabaseUnavailable}. */
function noAnswer(): Error {
  return new Error('Connection terminated: PostgreSQL has not answered in time');
}
