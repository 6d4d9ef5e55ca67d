import type { Db } from '../client/database.js';
import type { WakeableOperation } from '../operations/operations.repository.js';

/**
 * Has a pending operation tried now rather than when its retry is due. The attempt counts like any other.
 * @returns null when it is not pending, or a worker holds it at present.
 */
export async function hastenOperation(db: Db, operationId: string): Promise<WakeableOperation | null> {
  const [row] = await db.$queryRaw<WakeableOperation[]>`
    UPDATE runtime_operations SET due_at = now(), woken_at = now(), wake_ups = wake_ups + 1
    WHERE id = ${operationId} AND status = 'pending' AND (lease_expires_at IS NULL OR lease_expires_at <= now())
    RETURNING id, kind, run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
  return row ?? null;
}
