import { createHash } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { Prisma, PrismaClient } from '../generated/client.js';

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
  /** Told about connections that fail while idle; they are replaced by themselves. */
  readonly onConnectionError?: (error: Error) => void;
}

/** Either the client itself or one transaction of it: what every repository function takes first. */
export type Db = PrismaClient | Prisma.TransactionClient;

/** What runs one typed statement (`$queryRaw`): a client, a transaction, or {@link Database.hot}. */
export interface TypedSql {
  $queryRaw<T = unknown>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<T>;
}

/** How long a request waits for a free connection, and a statement for PostgreSQL, in milliseconds. */
const CONNECT_DEADLINE_MS = 3000;
const STATEMENT_DEADLINE_MS = 10_000;
const TRANSACTION_WAIT_MS = 3000;
const TRANSACTION_DEADLINE_MS = 15_000;
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
  readonly #pool: pg.Pool;

  constructor(settings: DatabaseSettings) {
    this.#pool = new pg.Pool({
      connectionString: settings.url,
      max: settings.poolMax,
      connectionTimeoutMillis: CONNECT_DEADLINE_MS,
      // Both ends: PostgreSQL gives up on a statement that is slow, we on a server that is frozen.
      statement_timeout: STATEMENT_DEADLINE_MS,
      query_timeout: STATEMENT_DEADLINE_MS + 1000,
      idle_in_transaction_session_timeout: TRANSACTION_DEADLINE_MS,
      // Prisma's adapter writes and reads timestamps without a zone and takes the session's to be UTC.
      options: `-c TimeZone=UTC${settings.asynchronousCommit === true ? ' -c synchronous_commit=off' : ''}`,
      keepAlive: true,
    });
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
    return this.prisma.$transaction(work, { maxWait: TRANSACTION_WAIT_MS, timeout: TRANSACTION_DEADLINE_MS });
  }

  async close(): Promise<void> {
    await this.prisma.$disconnect();
    if (!this.#pool.ended) await this.#pool.end();
  }
}

function typedSql(pool: pg.Pool, nameOf: (query: { sql: string; args: unknown[] }) => string): TypedSql {
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
