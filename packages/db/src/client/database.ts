import { createHash } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { Prisma, PrismaClient } from '../generated/client.js';
import { AwakeClock } from './awake-clock.js';
import { Pool } from './pool.js';
import { TransactionLateError } from './unavailable.js';

export interface DatabaseSettings {
  /** `postgresql://…` */
  readonly url: string;
  /** Connections that may be open at once. */
  readonly poolMax: number;
  /**
   * Commits do not wait for the disk: for statements that may be lost in a crash of PostgreSQL without losing accepted
   * work, such as claims. What is read back is consistent all the same.
   */
  readonly asynchronousCommit?: boolean;
  /**
   * Plans go by indexes alone. For a process whose every statement has one: a plan that was made while a table was small,
   * and read all of it, would be kept while it grows, until PostgreSQL looks at the table again.
   */
  readonly indexesOnly?: boolean;
  /** Told about connections that fail while idle; they are replaced by themselves. */
  readonly onConnectionError?: (error: Error) => void;
  /** Tests shorten them. */
  readonly deadlines?: Deadlines;
}

/** In milliseconds. */
interface Deadlines {
  /** Until a request has a connection. */
  readonly connectMs: number;
  /** Until PostgreSQL gives up on a statement. */
  readonly statementMs: number;
  /** Until a transaction is over, and for how long PostgreSQL lets it be idle. */
  readonly transactionMs: number;
}

const DEADLINES: Deadlines = { connectMs: 3000, statementMs: 10_000, transactionMs: 15_000 };
/** How much longer than PostgreSQL itself we wait for a statement, in milliseconds. */
const ANSWER_LATER_MS = 1000;
/**
 * The longest that a timer can be. Prisma's own deadlines fire as soon as a process that stood still goes on, and what
 * they bound is bounded by ours: to begin a transaction takes a connection and a statement.
 */
const PRISMA_WAITS_MS = 2 ** 31 - 1;

/** Either the client itself or one transaction of it: what every repository function takes first. */
export type Db = PrismaClient | Prisma.TransactionClient;

/** What runs one typed statement (`$queryRaw`): a client, a transaction, or {@link Database.hot}. */
export interface TypedSql {
  $queryRaw<T = unknown>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<T>;
}

/** Distinct statements kept prepared per connection; Prisma's generated SQL is a small closed set. */
const PREPARED_STATEMENTS_MAX = 300;

/** The process's access to PostgreSQL. */
export class Database {
  readonly prisma: PrismaClient;
  /**
   * Typed statements outside of a transaction, on the same connections as `prisma` but past its query interpreter, which
   * costs more than the statement itself (docs/benchmarks.md). For the few statements that every request runs.
   */
  readonly hot: TypedSql;
  readonly #awake = new AwakeClock();
  readonly #transactionMs: number;
  readonly #pool: Pool;

  constructor(settings: DatabaseSettings) {
    const { connectMs, statementMs, transactionMs } = settings.deadlines ?? DEADLINES;
    this.#transactionMs = transactionMs;
    this.#pool = new Pool(
      {
        connectionString: settings.url,
        max: settings.poolMax,
        // Both ends: PostgreSQL gives up on a statement that is slow, we on a server that is frozen.
        statement_timeout: statementMs,
        idle_in_transaction_session_timeout: transactionMs,
        // Prisma's adapter writes and reads timestamps without a zone and takes the session's to be UTC.
        options: [
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
    // Ours and not the adapter's `onPoolError`: it listens from its first statement on, and an idle connection that fails
    // while nobody listens ends the process.
    this.#pool.on('error', onError);
    const nameOf = statementNames();
    this.hot = typedSql(this.#pool, nameOf);
    this.prisma = new PrismaClient({
      adapter: new PrismaPg(this.#pool, {
        statementNameGenerator: nameOf,
        onConnectionError: onError,
      }),
      errorFormat: 'minimal',
    });
  }

  /** Resolves when PostgreSQL answers. */
  async ping(): Promise<void> {
    await this.#pool.query('SELECT 1');
  }

  /** Commits all that `work` writes, or nothing. */
  transaction<T>(work: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T> {
    return this.prisma.$transaction((tx) => this.#inTime(work(tx)), {
      maxWait: PRISMA_WAITS_MS,
      timeout: PRISMA_WAITS_MS,
    });
  }

  /** Connections of the pool, and how many callers wait for one. */
  connections(): { used: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  async close(): Promise<void> {
    await this.prisma.$disconnect();
    if (!this.#pool.ended) await this.#pool.end();
    this.#awake.close();
  }

  /** What throws rolls the transaction back; what `work` still asks of it then fails. */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    let inTime: (() => void) | undefined;
    const late = new Promise<never>((_, reject) => {
      inTime = this.#awake.after(this.#transactionMs, () => reject(new TransactionLateError(this.#transactionMs)));
    });
    return Promise.race([work, late]).finally(inTime);
  }
}

function typedSql(pool: Pool, nameOf: (query: { sql: string; args: unknown[] }) => string): TypedSql {
  return {
    async $queryRaw<T>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<T> {
      const statement = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
      const name = nameOf({ sql: statement.text, args: statement.values });
      const result = await pool.query({ name, text: statement.text, values: statement.values });
      return result.rows as T;
    },
  };
}

/** Names statements by their text, so that each connection parses and plans each of them once. */
function statementNames(): (query: { sql: string; args: unknown[] }) => string {
  const names = new Map<string, string>();
  return ({ sql, args }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    // The empty name is PostgreSQL's unnamed statement: parsed each time, kept by nobody.
    if (args.length === 0 || names.size >= PREPARED_STATEMENTS_MAX) return '';
    const name = `cp_${createHash('sha256').update(sql).digest('base64url').slice(0, 22)}`;
    names.set(sql, name);
    return name;
  };
}
