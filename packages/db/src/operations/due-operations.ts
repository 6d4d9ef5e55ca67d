import type { TypedSql } from '../client/database.js';
import { isExhausted, isUnleased, WAKEABLE_COLUMNS } from './operation.sql.js';
import type { WakeableOperation } from './operations.repository.js';

export interface DueOperation extends WakeableOperation {
  /** Its place among the due operations of its environment, from 1 on. */
  place: number;
  /** How long ago it became due, or its last lease expired. */
  lateMs: number;
}

/**
 * The operations that a worker may claim now: the first of every environment before the second of any. Reads all due
 * rows, so that a tenant with many of them cannot hide those of another.
 */
export function findDueOperations(db: TypedSql, limit: number): PromiseLike<DueOperation[]> {
  return db.$queryRaw<DueOperation[]>`
    SELECT ${WAKEABLE_COLUMNS}, place::int,
      (extract(epoch FROM now() - greatest(due_at, lease_expires_at)) * 1000)::float8 AS "lateMs"
    FROM (
      SELECT *, row_number() OVER (PARTITION BY environment_id ORDER BY due_at) AS place
      FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND ${isUnleased} AND NOT ${isExhausted}
    ) due
    ORDER BY place, due_at LIMIT ${limit}::int`;
}
