import type { TypedSql } from '../client/database.js';
import { isUnleased, WAKEABLE_COLUMNS } from '../operations/operation.sql.js';
import type { WakeableOperation } from '../operations/operations.repository.js';

/**
 * Makes a pending operation due now instead of at its retry time. The attempt counts like any other.
 * @returns null when it is not pending, or when a worker currently holds it.
 */
export async function hastenOperation(db: TypedSql, operationId: string): Promise<WakeableOperation | null> {
  const [row] = await db.$queryRaw<WakeableOperation[]>`
    UPDATE runtime_operations SET due_at = now()
    WHERE id = ${operationId} AND status = 'pending' AND ${isUnleased}
    RETURNING ${WAKEABLE_COLUMNS}`;
  return row ?? null;
}
