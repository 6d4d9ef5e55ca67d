import type { Clock } from '@callplane/core';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/client.js';
import { connectionTarget, type ConnectionSettings } from './connection-config.js';
import { Hosts } from './hosts.js';
import { Pool } from './pool.js';
import {
  beginWithDeadlines,
  checkSession,
  compareClock,
  ownSession,
  pooledSession,
  type SessionDeadlines,
  type SessionWishes,
} from './session.js';
import { statementNames, typedSql, type NameOf, type TypedSql } from './sql.js';
import { repeatConflicts, runTransaction, type Repeat } from './transactions.js';
import { isDiskFull, UnfitServerError } from './unavailable.js';

export type { TypedSql };

/** The `options` of the URL apply beside ours, which win. */
export interface DatabaseSettings extends ConnectionSettings, SessionWishes {
  /** Maximum number of connections. As many more may wait for late answers of PostgreSQL. */
  readonly poolMax: number;
  /**
   * `transaction`: a pooler gives each transaction another session. Statements have no names then, deadlines are set in
   * each transaction, and the database must set the time zone. Drops `indexesOnly`.
   */
  readonly pooler?: 'none' | 'transaction';
  /** Names the process in `pg_stat_activity`. PostgreSQL keeps the first 63 bytes. */
  readonly applicationName?: string;
  /** Called with the error of a connection that fails while idle. The pool replaces the connection itself. */
  readonly onConnectionError?: (error: Error) => void;
  /** Called when a statement or a transaction is repeated after a deadlock or a serialization failure. */
  readonly onRepeat?: () => void;
  readonly deadlines?: Deadlines;
  /**
   * How long a statement waits for a PostgreSQL that refuses connections, in milliseconds, if it has not been sent;
   * default 0.
   */
  readonly waitMs?: number;
}

interface Deadlines extends SessionDeadlines {
  readonly connectMs: number;
}

const DEADLINES: Deadlines = { connectMs: 3000, statementMs: 10_000, transactionMs: 15_000 };
/**
 * Idle time until the kernel asks whether the server still exists, in milliseconds. It asks ten times, a second apart,
 * so the connection to a machine without power ends after 20 s.
 */
const KEEP_ALIVE_MS = 10_000;
/** How much longer than PostgreSQL's own statement timeout the client waits for a result, in milliseconds. */
const ANSWER_LATER_MS = 1000;
/** Models. Functions that use them take it first, then the tenant. Statements and transactions are {@link Database}'s. */
export type Db = Omit<PrismaClient, `$${'transaction' | 'queryRaw' | 'executeRaw'}${'' | 'Unsafe'}`>;

export class Database {
  #prisma: PrismaClient | undefined;
  /**
   * Runs SQL statements outside of transactions, on the same connections as `prisma` but without its query interpreter,
   * which costs more than a short statement itself (docs/decisions/0003-models-and-sql.md).
   */
  readonly sql: TypedSql;
  readonly #begin: string;
  readonly #transactionMs: number;
  readonly #repeat: Repeat;
  readonly #pool: Pool;
  readonly #hosts: Hosts;
  readonly #nameOf: NameOf;
  readonly #onError: (error: Error) => void;
  /** Null behind a pooler, which would show the name of one process to another. */
  readonly #name: string | null;
  /** Whether PostgreSQL has refused a statement because its disk is full, and {@link checkDisk} has not passed since. */
  #wasDiskFull = false;

  /** @throws an error of one line if the URL cannot be parsed, or a file cannot be read. */
  constructor(settings: DatabaseSettings) {
    const { connectMs, statementMs, transactionMs } = settings.deadlines ?? DEADLINES;
    const target = connectionTarget(settings);
    this.#hosts = new Hosts(target, settings.poolMax);
    const hostMs = target.connectTimeoutMs ?? connectMs / target.hosts.length;
    const isPooled = settings.pooler === 'transaction';
    this.#begin = isPooled ? beginWithDeadlines({ statementMs, transactionMs }) : 'BEGIN';
    this.#transactionMs = transactionMs;
    this.#repeat = repeatConflicts(() => settings.onRepeat?.());
    this.#name = isPooled ? null : (settings.applicationName ?? null);
    this.#pool = new Pool(
      {
        max: settings.poolMax,
        ...(settings.applicationName === undefined ? {} : { application_name: settings.applicationName }),
        ...(isPooled ? pooledSession(target) : ownSession(target, settings, { statementMs, transactionMs })),
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      },
      this.#hosts,
      {
        connectMs,
        hostMs: Math.min(hostMs, connectMs),
        answerMs: statementMs + ANSWER_LATER_MS,
        onDiskFull: () => (this.#wasDiskFull = true),
        repeat: this.#repeat,
        waitMs: settings.waitMs ?? 0,
      },
    );
    this.#onError = (error: Error): void => settings.onConnectionError?.(error);
    // Registered here instead of through the adapter's `onPoolError`, which starts to listen with its first statement.
    // Without a listener, the failure of an idle connection would end the process.
    this.#pool.on('error', this.#onError);
    this.#nameOf = isPooled ? () => '' : statementNames();
    this.sql = typedSql(this.#pool, this.#nameOf);
  }

  get prisma(): Db {
    this.#prisma ??= new PrismaClient({
      adapter: new PrismaPg(this.#pool, { statementNameGenerator: this.#nameOf, onConnectionError: this.#onError }),
      errorFormat: 'minimal',
    });
    return this.#prisma;
  }

  async ping(): Promise<void> {
    await this.sql.$queryRaw`SELECT 1`;
  }

  /**
   * Resolves when PostgreSQL accepts writes, and returns timestamps in UTC.
   * @throws UnfitServerError
   */
  async checkReady(): Promise<void> {
    const client = await this.#pool.connectNow();
    let failure: Error | undefined;
    try {
      await checkSession(client);
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      // Closes a connection that failed the check: a session stays read-only after the server has become writable, and
      // no write would show it, because an app that is not ready gets none.
      client.release(failure);
    }
    await this.checkDisk();
  }

  /**
   * Compares the clock of this process with PostgreSQL's. If it is wrong, the name of the connection says so to
   * `rtc doctor`.
   * @returns how far this clock is ahead, in milliseconds.
   */
  async compareClock(clock: Clock): Promise<number> {
    const client = await this.#pool.connect();
    try {
      return await compareClock(client, clock, this.#name);
    } finally {
      client.release();
    }
  }

  /**
   * Once a statement has found the disk full, tries writes until one passes: an app that is not ready gets none to try.
   * The write makes a table, which needs a file. A row may fit into a page that has room, and the log of changes has its
   * files already.
   * @throws UnfitServerError
   */
  async checkDisk(): Promise<void> {
    if (!this.#wasDiskFull) return;
    try {
      await this.sql.$executeRaw`CREATE TEMP TABLE callplane_disk_probe ON COMMIT DROP AS SELECT 1 AS one`;
      this.#wasDiskFull = false;
    } catch (error) {
      throw isDiskFull(error) ? new UnfitServerError('disk-full') : error;
    }
  }

  /** Runs `work` in one transaction, which commits all its writes or none. After a conflict it begins from the start. */
  transaction<T>(work: (sql: TypedSql) => PromiseLike<T>): Promise<T> {
    const rules = { begin: this.#begin, milliseconds: this.#transactionMs };
    return this.#repeat(() =>
      runTransaction(this.#pool, rules, (client, check) => work(typedSql(client, this.#nameOf, check))),
    );
  }

  connections(): { used: number; idle: number; waiting: number } {
    const { totalCount, idleCount, callersCount } = this.#pool;
    return { used: totalCount - idleCount, idle: idleCount, waiting: callersCount };
  }

  async close(): Promise<void> {
    await this.#prisma?.$disconnect();
    if (!this.#pool.ended) await this.#pool.end();
    this.#hosts.close();
  }
}
