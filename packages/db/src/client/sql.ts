import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { newId, type IdKind } from '@callplane/core';
import type pg from 'pg';
import { Prisma } from '../generated/client.js';

/** SQL: `Database.sql`, or a transaction. Functions that run statements take it first, then the tenant. */
export interface TypedSql {
  /** `npm test` compares the declared rows with PostgreSQL's description of the statement. */
  $queryRaw<Rows = unknown>(parts: TemplateStringsArray, ...values: unknown[]): PromiseLike<Rows>;
  /** @returns the number of rows that the statement has changed. */
  $executeRaw(parts: TemplateStringsArray, ...values: unknown[]): PromiseLike<number>;
  /** Never present. The compiler therefore accepts no Prisma client in place of `Database.sql`. */
  readonly $connect?: never;
}

/**
 * A condition that always holds: the commit of its statement, outside of a transaction, does not wait for the disk. For
 * statements that PostgreSQL may lose in a crash without losing accepted work. A later commit that waits keeps them too.
 */
export const COMMIT_SOON = Prisma.sql`(SELECT set_config('synchronous_commit', 'off', true)) = 'off'`;

/** Maximum number of distinct prepared statements per connection; Prisma generates a small closed set. */
const PREPARED_STATEMENTS_MAX = 300;

export type NameOf = (query: { sql: string; args: unknown[] }) => string;

/** The statements that run, for the tests. Nobody else subscribes. */
const statements = channel('callplane.statements');

/** @param check called before each statement; throws if it may not run any more. */
export function typedSql(
  connection: Pick<pg.ClientBase, 'query'>,
  nameOf: NameOf,
  check: () => void = () => undefined,
): TypedSql {
  const run = async (parts: TemplateStringsArray, values: unknown[]): Promise<pg.QueryResult> => {
    check();
    // Each access to `text` joins the parts of the statement anew.
    const { text, values: args } = Prisma.sql(parts, ...values);
    const result = await connection.query({ name: nameOf({ sql: text, args }), text, values: args });
    if (statements.hasSubscribers) statements.publish({ text, parts, rows: result.rows });
    return result;
  };
  return {
    async $queryRaw<Rows>(parts: TemplateStringsArray, ...values: unknown[]): Promise<Rows> {
      return (await run(parts, values)).rows as Rows;
    },
    async $executeRaw(parts: TemplateStringsArray, ...values: unknown[]): Promise<number> {
      return (await run(parts, values)).rowCount ?? 0;
    },
  };
}

/** Names statements by a hash of their text, so that each connection parses and plans each statement once. */
export function statementNames(): NameOf {
  const names = new Map<string, string>();
  return ({ sql, args }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    statements.publish({ text: sql });
    // The empty name is PostgreSQL's unnamed statement, which is parsed each time and never cached.
    if (args.length === 0 || names.size >= PREPARED_STATEMENTS_MAX) return '';
    const name = `cp_${createHash('sha256').update(sql).digest('base64url').slice(0, 22)}`;
    names.set(sql, name);
    return name;
  };
}

/**
 * Array parameters for `unnest`, as subqueries: they hide the lengths from the planner. PostgreSQL would compare a plan
 * for the present lengths with the generic plan for ten elements, find the former cheaper, and plan the statement anew
 * at each execution. That costs up to 0.6 ms (measured), more than the statement itself.
 */
export const texts = (values: readonly (string | null)[]): Prisma.Sql => Prisma.sql`(SELECT ${values}::text[])`;
export const ints = (values: readonly (number | null)[]): Prisma.Sql => Prisma.sql`(SELECT ${values}::int[])`;

/** A column of {@link newRows}: its type in SQL, and its value in each row. */
export type Column = readonly ['text' | 'int' | 'boolean' | 'jsonb', readonly (string | number | boolean | null)[]];

/**
 * The rows that a statement inserts, as a table for FROM: arrays as in {@link texts}, but a lone row as parameters,
 * which takes PostgreSQL a quarter less time.
 */
export function newRows(columns: Record<string, Column>): Prisma.Sql {
  const entries = Object.values(columns);
  const isLone = entries[0]?.[1].length === 1;
  const [begin, open, array, close, end] = isLone
    ? ['(VALUES (', '', '', '', '))']
    : ['unnest(', '(SELECT ', '[]', ')', ')'];
  const casts = entries.map(([type]) => `::${type}${array}${close}`);
  const last = `${casts.pop() ?? ''}${end} AS new (${Object.keys(columns).join(', ')})`;
  const parts = [`${begin}${open}`, ...casts.map((cast) => `${cast}, ${open}`), last];
  return new Prisma.Sql(
    parts,
    entries.map(([, values]) => (isLone ? values[0] : values)),
  );
}

/**
 * Words of a vocabulary of core as SQL literals, such as `'created', 'active'`. Literals instead of a parameter, so that
 * PostgreSQL plans with them.
 * @param words constants, never external input: they go into the SQL unescaped.
 */
export function literals(words: readonly string[]): Prisma.Sql {
  return Prisma.raw(words.map((word) => `'${word}'`).join(', '));
}

const RANDOM_LENGTH = 16;

/**
 * An expression that makes an id of this kind for each row. For statements that alone know how many rows they insert;
 * otherwise `newId` makes the ids. Ids carry this process's time.
 *
 * PostgreSQL has no base 32, so the random characters come from base 64: in lower case, with those characters replaced
 * that the alphabet of ids does not have. Digits then occur less often than letters, which costs 0.05 of the 5 bits of
 * a character. Two positions hold the version and the variant of a UUIDv7. One of them lies where `gen_random_uuid()`
 * has its version, and 68 random bits remain. An id takes 3.5 µs; the same in PL/pgSQL took 45 µs.
 */
export function newIdInSql(kind: IdKind): Prisma.Sql {
  const start = newId(kind).slice(0, -RANDOM_LENGTH);
  return Prisma.sql`${start}::text || overlay(overlay(
    translate(substr(lower(encode(uuid_send(gen_random_uuid()), 'base64') COLLATE "C"), 6, 16), 'ilou+/', '012345')
    placing 'e' from 1 for 1) placing '8' from 4 for 1)`;
}

/** An older observation means that the workers are down, or the server is no longer configured. */
export const OBSERVATION_VALID_MS = 30_000;

export const isObservationValid = Prisma.sql`checked_at > now() - ${OBSERVATION_VALID_MS}::int * interval '1 millisecond'`;

/**
 * Deletes one batch of a table and returns the number of its rows; call it until that is less than the limit. Locked
 * rows are skipped, so a batch never waits for a lock and holds none for long.
 * @param table a constant, like `key`: both go into the SQL unescaped.
 * @param batch.rows selects the keys of the rows to delete, from the table with the alias `target`.
 * @param batch.key the column or columns of the key, `id` by default.
 */
export function deleteBatch(
  db: TypedSql,
  table: string,
  batch: { rows: Prisma.Sql; limit: number; key?: string },
): PromiseLike<number> {
  return db.$executeRaw`
    DELETE FROM ${Prisma.raw(table)} WHERE ${Prisma.raw(batch.key ?? 'id')} IN (
      ${batch.rows} LIMIT ${batch.limit} FOR UPDATE OF target SKIP LOCKED
    )`;
}
