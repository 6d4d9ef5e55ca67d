import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { dueKeys } from '../sweeps/due.sql.js';
import { PENDING } from '../webhooks/delivery.sql.js';
import { isExhausted, isUnleased, WAKEABLE_COLUMNS } from './operation.sql.js';
import type { WakeableOperation } from './operations.repository.js';

/** Environments per scan; the next scan continues after them. */
const ENVIRONMENTS_PER_SCAN = 500;

/** Bounds and cursor of one scan. */
export interface DueScan {
  /** Minimum age of a row's last wake-up: the job of a younger one may still arrive. */
  quietMs: number;
  /** Maximum number of rows per environment. */
  perEnvironment: number;
  /** Maximum number of rows in total. */
  limit: number;
  /** Cursor of the previous scan; null starts with the first environment. */
  after: string | null;
}

export interface TakenOperations {
  rows: WakeableOperation[];
  /** Cursor for the next scan. */
  after: string | null;
}

/**
 * Takes due rows without a valid lease, because their job was lost or Redis is unavailable. Marks them as woken, so
 * that workers that scan at the same time share the rows.
 *
 * Fair: it walks through the environments that have due rows, and reads a few rows of each on the index
 * (environment_id, due_at). It takes the first row of every environment before the second row of any. 100,000 due rows
 * of one environment cost as much as its first few, once they are due for longer than the floor lies back. The limited sub-selects are wrapped in `ARRAY(…)`, which runs them once.
 * In a join, PostgreSQL could run them several times, and each run would take other rows. PENDING is written so that
 * the search by id uses no index of pending rows, which an old snapshot makes long.
 */
export async function takeDueOperations(db: TypedSql, scan: DueScan): Promise<TakenOperations> {
  const isTakeable = Prisma.sql`due_at <= now()
    AND woken_at <= now() - ${scan.quietMs}::int * interval '1 millisecond' AND ${isUnleased} AND NOT ${isExhausted}`;
  const rows = await db.$queryRaw<(WakeableOperation & { last: string | null })[]>`
    WITH ${dueKeys('operations')}, walk AS MATERIALIZED (
      SELECT key AS environment_id, since FROM due_key
      WHERE key > ${scan.after ?? ''} ORDER BY key LIMIT ${ENVIRONMENTS_PER_SCAN}::int
    ), due AS (
      SELECT operation.id, operation.due_at,
        row_number() OVER (PARTITION BY walk.environment_id ORDER BY operation.due_at) AS turn
      FROM walk CROSS JOIN LATERAL (
        SELECT id, due_at FROM runtime_operations
        WHERE environment_id = walk.environment_id AND status = 'pending' AND due_at >= walk.since
          AND ${isTakeable}
        ORDER BY due_at LIMIT ${scan.perEnvironment}::int
      ) operation
    ), taken AS (
      UPDATE runtime_operations SET woken_at = now(), wake_ups = wake_ups + 1
      WHERE id = ANY(ARRAY(
        SELECT id FROM runtime_operations
        WHERE id = ANY(ARRAY(SELECT id FROM due ORDER BY turn, due_at LIMIT ${scan.limit}::int)) AND ${PENDING} AND ${isTakeable}
        FOR NO KEY UPDATE SKIP LOCKED
      ))
      RETURNING id, environment_id, kind, run, run_attempts, wake_ups, due_at
    ), place AS (
      SELECT CASE WHEN count(environment_id) = ${ENVIRONMENTS_PER_SCAN}::int THEN max(environment_id) END AS last FROM walk
    )
    SELECT ${WAKEABLE_COLUMNS}, place.last
    FROM place LEFT JOIN taken ON true ORDER BY taken.due_at`;
  return {
    // When no row was taken, the result is a single row that holds only the cursor.
    rows: rows.flatMap(({ last: _last, ...row }) => ((row.id as string | null) === null ? [] : [row])),
    after: rows[0]?.last ?? null,
  };
}

/** Sets the last wake-up of due rows without a lease to an hour ago, so that the next scan takes them. */
export async function forgetWakeUps(db: TypedSql, operationIds: readonly string[]): Promise<void> {
  await db.$executeRaw`
    UPDATE runtime_operations SET woken_at = now() - interval '1 hour'
    WHERE id = ANY(${[...operationIds]}) AND status = 'pending' AND lease_token IS NULL AND due_at <= now()`;
}
