import { createHash } from 'node:crypto';
import type { PoolClient, QueryResult } from 'pg';
import { Prisma } from '../generated/client.js';
import type { Pool } from './pool.js';

/** SQL: `Database.sql`, or a transaction. Functions that run statements take it first, then the tenant. */
export interface TypedSql {
  $queryRaw<T = unknown>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<T>;
  /** @returns the number of rows that the statement has changed. */
  $executeRaw(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): PromiseLike<number>;
  /** Never present. The compiler therefore accepts no Prisma client in place of `Database.sql`. */
  readonly $connect?: never;
}

/** Maximum number of distinct prepared statements per connection; Prisma generates a small closed set. */
const PREPARED_STATEMENTS_MAX = 300;

export type NameOf = (query: { sql: string; args: unknown[] }) => string;

/** @param check called before each statement; throws if it may not run any more. */
export function typedSql(
  connection: Pick<Pool, 'query'> | Pick<PoolClient, 'query'>,
  nameOf: NameOf,
  check: () => void = () => undefined,
): TypedSql {
  const run = async (query: TemplateStringsArray | Prisma.Sql, values: unknown[]): Promise<QueryResult> => {
    check();
    // Each access to `text` joins the parts of the statement anew.
    const { text, values: args } = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
    return connection.query({ name: nameOf({ sql: text, args }), text, values: args });
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
export function statementNames(): NameOf {
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
