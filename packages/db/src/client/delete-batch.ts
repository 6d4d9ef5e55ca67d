import { Prisma } from '../generated/client.js';
import type { TypedSql } from './database.js';

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
