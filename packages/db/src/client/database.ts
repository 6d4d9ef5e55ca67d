import { createHash } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import type { PoolClient, QueryResult } from 'pg';
import { Prisma, PrismaClient } from '../generated/client.js';
import { AwakeClock } from './awake-clock.js';
import { Pool } from './pool.js';
import { checkSession } from './session-check.js';
import { splitOptions } from './split-options.js';
import { TransactionLateError } from './unavailable.js';

export interface DatabaseSettings {
  /** `postgresql://…`. Its `options` apply beside ours, which win. */
  readonly url: string;
  /** Maximum number of open connections. */
  readonly poolMax: number;
  /**
   * Commits do not wait for the disk. Use it for statements that PostgreSQL may lose in a crash without losing accepted
   * work, such as claims. Reads stay consistent.
   */
  readonly asynchronousCommit?: boolean;
  /**
   * Disables sequential scans in query plans. For a process whose every statement has an index: PostgreSQL would
   * otherwise keep a sequential scan that it planned for a small table, while the table grows, until it next analyses
   * the table.
   */
  readonly indexesOnly?: boolean;
  /** Names the process in `pg_stat_activity`. PostgreSQL keeps the first 63 bytes. */
  readonly applicationName?: string;
  /** Called with the error of a connection that fails while idle. The pool replaces the connection itself. */
  readonly onConnectionError?: (error: Error) => void;
  /** Tests set shorter ones. */
  readonly deadlines?: Deadlines;
}

/** In milliseconds. */
interface Deadlines {
  /** Until a request gets a connection. */
  readonly connectMs: number;
  /** Until PostgreSQL cancels a statement. */
  readonly statementMs: number;
  /** Until a transaction must end, and for how long PostgreSQL lets a transaction be idle. */
  readonly transactionMs: number;
}

const DEADLINES: Deadlines = { connectMs: 3000, statementMs: 10_000, transactionMs: 15_000 };
/** How much longer than PostgreSQL's own statement timeout the client waits for a result, in milliseconds. */
const ANSWER_LATER_MS = 1000;
/**
 * The longest possible timer, which disables Prisma's own deadlines: they would fire as soon as a paused process
 * resumes. Ours cover them, because beginning a transaction takes a connection and a statement.
 */
const PRISMA_WAITS_MS = 2 ** 31 - 1;

/**
 * The model API: {@link Database.prisma}, or a transaction. Functions that use models take it first, then the tenant.
 */
export type Db = PrismaClient | Prisma.TransactionClient;

/** SQL: {@link Database.sql}, or a transaction. Functions that run statements take it first, then the tenant. */
export interface TypedSql {
  $queryRaw<T = unknown>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<T>;
  /** @returns the number of rows that the statement has changed. */
  $executeRaw(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<number>;
  /**
   * Never present. The Prisma client has such a method, so the compiler does not accept it in place of
   * {@link Database.sql}.
   */
  readonly $connect?: never;
}

/** Maximum number of distinct prepared statements per connection; Prisma generates a small closed set. */
const PREPARED_STATEMENTS_MAX = 300;

/** The PostgreSQL client of this process. */
export class Database {
  readonly prisma: PrismaClient;
  /**
   * Runs SQL statements outside of transactions, on the same connections as `prisma` but without its query interpreter,
   * which costs more than a short statement itself (docs/decisions/0003-models-and-sql.md).
   */
  readonly sql: TypedSql;
  readonly #awake = new AwakeClock();
  readonly #transactionMs: number;
  readonly #pool: Pool;
  readonly #nameOf: NameOf;

  constructor(settings: DatabaseSettings) {
    const { connectMs, statementMs, transactionMs } = settings.deadlines ?? DEADLINES;
    this.#transactionMs = transactionMs;
    const { url, options } = splitOptions(settings.url);
    this.#pool = new Pool(
      {
        connectionString: url,
        max: settings.poolMax,
        ...(settings.applicationName === undefined ? {} : { application_name: settings.applicationName }),
        // Timeouts on both sides: PostgreSQL cancels slow statements, and the client closes connections to a frozen
        // server.
        statement_timeout: statementMs,
        idle_in_transaction_session_timeout: transactionMs,
        // Prisma's adapter writes and reads timestamps without a time zone and assumes that the session uses UTC.
        options: [
          ...options,
          '-c TimeZone=UTC',
          ...(settings.asynchronousCommit === true ? ['-c synchronous_commit=off'] : []),
          ...(settings.indexesOnly === true ? ['-c enable_seqscan=off'] : []),
        ].join(' '),
        keepAlive: true,
      },
      { connectMs, answerMs: statementMs + ANSWER_LATER_MS },
      this.#awake,
    );
    const onError = (error: Error): void => settings.onConnectionError?.(error);
    // Registered here instead of through the adapter's `onPoolError`, which starts to listen with its first statement.
    // Without a listener, the failure of an idle connection would end the process.
    this.#pool.on('error', onError);
    this.#nameOf = statementNames();
    this.sql = typedSql(this.#pool, this.#nameOf);
    this.prisma = new PrismaClient({
      adapter: new PrismaPg(this.#pool, {
        statementNameGenerator: this.#nameOf,
        onConnectionError: onError,
      }),
      errorFormat: 'minimal',
    });
  }

  /** Resolves when PostgreSQL responds. */
  async ping(): Promise<void> {
    await this.#pool.query('SELECT 1');
  }

  /**
   * Resolves when PostgreSQL accepts writes, and returns timestamps in UTC.
   * @throws UnfitServerError
   */
  async checkReady(): Promise<void> {
    const client = await this.#pool.connect();
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
  }

  /** Runs `work` in one transaction, which commits all its writes or none. */
  transaction<T>(work: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T> {
    return this.prisma.$transaction((tx) => this.#inTime(work(tx)), {
      maxWait: PRISMA_WAITS_MS,
      timeout: PRISMA_WAITS_MS,
    });
  }

  /**
   * Runs `work` in one transaction like {@link transaction}, but without Prisma's interpreter, which costs more than
   * the statements themselves: six trivial statements take 0.4 ms of CPU here and 3.2 ms there (measured).
   */
  async sqlTransaction<T>(work: (sql: TypedSql) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let isOver = false;
    let lost: Error | undefined;
    const sql = typedSql(client, this.#nameOf, () => {
      // The statement would run outside of the transaction.
      if (isOver) throw new Error('the transaction is over');
    });
    try {
      await client.query('BEGIN');
      const result = await this.#inTime(work(sql));
      isOver = true;
      await client.query('COMMIT');
      return result;
    } catch (error) {
      isOver = true;
      // A transaction that is late may still run a statement: only closing its connection ends both.
      if (error instanceof TransactionLateError) lost = error;
      else await client.query('ROLLBACK').catch((failure: unknown) => (lost = failure as Error));
      throw error;
    } finally {
      client.release(lost);
    }
  }

  /** Connections of the pool, and the number of callers that wait for one. */
  connections(): { used: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  async close(): Promise<void> {
    await this.prisma.$disconnect();
    if (!this.#pool.ended) await this.#pool.end();
    this.#awake.close();
  }

  /**
   * Rejects when the deadline passes. The error rolls the transaction back, and later statements of `work` in it fail.
   */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    let inTime: (() => void) | undefined;
    const late = new Promise<never>((_, reject) => {
      inTime = this.#awake.after(this.#transactionMs, () => reject(new TransactionLateError(this.#transactionMs)));
    });
    return Promise.race([work, late]).finally(inTime);
  }
}

type NameOf = (query: { sql: string; args: unknown[] }) => string;

/** @param check called before each statement; throws if it may not run any more. */
function typedSql(
  connection: Pick<Pool, 'query'> | Pick<PoolClient, 'query'>,
  nameOf: NameOf,
  check: () => void = () => undefined,
): TypedSql {
  const run = async (query: TemplateStringsArray | Prisma.Sql, values: unknown[]): Promise<QueryResult> => {
    check();
    const statement = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
    const name = nameOf({ sql: statement.text, args: statement.values });
    return connection.query({ name, text: statement.text, values: statement.values });
  };
  return {
    async $queryRaw<T>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<T> {
      return (await run(query, values)).rows as T;
    },
    async $executeRaw(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<number> {
      return (await run(query, values)).rowCount ?? 0;
    },
  };
}

/** Names statements by a hash of their text, so that each connection parses and plans each statement once. */
function statementNames(): NameOf {
  const names = new Map<string, string>();
  return ({ sql, args }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    // The empty name is PostgreSQL's unnamed statement, which is parsed each time and never cached.
    if (args.length === 0 || names.size >= PREPARED_STATEMENTS_MAX) return '';
    const name = `cp_${createHash('sha256').update(sql).digest('base64url').slice(0, 22)}`;
    names.set(sql, name);
    return name;
  };
}
