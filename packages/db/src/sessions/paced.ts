import type { PaceTimes } from '@callplane/core';
import { Prisma } from '../generated/client.js';

/**
 * A token bucket stored in a row: a column holds the time when the bucket is full again, by PostgreSQL's clock; null
 * means full. One conditional update checks the bucket and takes a token, so all instances share the bucket without
 * Redis.
 */
export function paced(column: Prisma.Sql, { intervalMs, aheadMs }: PaceTimes) {
  const milliseconds = (count: number): Prisma.Sql => Prisma.sql`${count}::float8 * interval '1 millisecond'`;
  return {
    /** Whether the bucket has a token. */
    isFree: Prisma.sql`(${intervalMs}::float8 = 0 OR ${column} IS NULL OR ${column} <= now() + ${milliseconds(aheadMs)})`,
    /** The column's value after a token was taken. */
    taken: Prisma.sql`CASE WHEN ${intervalMs}::float8 = 0 THEN ${column}
      ELSE greatest(coalesce(${column}, now()), now()) + ${milliseconds(intervalMs)} END`,
    /** Milliseconds until the bucket has a token. */
    waitMs: Prisma.sql`greatest(extract(epoch FROM ${column} - now() - ${milliseconds(aheadMs)}) * 1000, 0)::float8`,
  };
}
