import { ATTEMPTS_PER_RUN, type OperationError, type OperationState, type Tenant } from '@callplane/core';
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

/** An operation that a sweep has given up, and whom it belongs to. */
export interface ExhaustedOperation extends OperationState, Tenant {
  roomId: string;
  participantId: string | null;
}

/**
 * Settles one row whose worker died in the run's last attempt: there is no attempt left to make, so it failed.
 * @returns null when there is none.
 */
export async function settleExhaustedOperation(db: Db): Promise<ExhaustedOperation | null> {
  const [row] = await db.$queryRaw<ExhaustedOperation[]>`
    UPDATE runtime_operations
    SET status = 'failed', last_error = ${JSON.stringify(LEASE_EXPIRED)}::jsonb, lease_token = NULL,
      lease_expires_at = NULL
    WHERE id = (
      SELECT id FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND run_attempts >= ${ATTEMPTS_PER_RUN}
        AND lease_expires_at <= now()
      ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING id, kind, status, attempts, last_error AS "lastError", completed_at AS "completedAt",
      room_id AS "roomId", participant_id AS "participantId", environment_id AS "environmentId",
      (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"`;
  return row ?? null;
}
