import { ATTEMPTS_PER_RUN, type OperationError } from '@callplane/core';
import type { Db } from '../client/database.js';
import type { WakeableOperation } from './operations.repository.js';

const LEASE_EXPIRED: OperationError = {
  code: 'LEASE_EXPIRED',
  message: 'The last attempt was not settled in time: its worker stopped.',
};

/**
 * Finds rows that are due and that nothing has woken for a while (their job was lost, or their worker died and its
 * lease has run out), and marks them as woken. Several sweeps at once share the rows. (An array, because a join with
 * the sub-select may run it again and go past its limit.)
 * @param quietMs how long ago the last wake-up must lie.
 */
export function takeUnwokenOperations(db: Db, quietMs: number, limit: number): Promise<WakeableOperation[]> {
  return db.$queryRaw<WakeableOperation[]>`
    UPDATE runtime_operations SET woken_at = now(), wake_ups = wake_ups + 1
    WHERE id = ANY(ARRAY(
      SELECT id FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND woken_at <= now() - ${quietMs}::int * interval '1 millisecond'
        AND (lease_expires_at IS NULL OR lease_expires_at <= now()) AND run_attempts < ${ATTEMPTS_PER_RUN}
      ORDER BY due_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id, kind, run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
}

/**
 * Rows whose worker died in the run's last attempt: there is no attempt left to make, so they failed.
 * @returns their ids.
 */
export async function settleExhaustedOperations(db: Db, limit: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE runtime_operations
    SET status = 'failed', last_error = ${JSON.stringify(LEASE_EXPIRED)}::jsonb, lease_token = NULL,
      lease_expires_at = NULL
    WHERE id = ANY(ARRAY(
      SELECT id FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND run_attempts >= ${ATTEMPTS_PER_RUN}
        AND lease_expires_at <= now()
      ORDER BY due_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
