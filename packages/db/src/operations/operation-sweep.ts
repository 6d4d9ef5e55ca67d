import type { OperationError, OperationState, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { isExhausted, OPERATION_COLUMNS } from './operation.sql.js';

const LEASE_EXPIRED: OperationError = {
  code: 'LEASE_EXPIRED',
  message: 'The last attempt was not settled in time: its worker stopped.',
};

/** An operation that the sweep has settled as failed, with its tenant. */
export interface ExhaustedOperation extends OperationState, Tenant {
  roomId: string;
  participantId: string | null;
}

/**
 * Settles one row as failed whose worker died in the run's last attempt, because no attempt is left.
 * @returns null when there is no such row.
 */
export async function settleExhaustedOperation(db: TypedSql): Promise<ExhaustedOperation | null> {
  const [row] = await db.$queryRaw<ExhaustedOperation[]>`
    UPDATE runtime_operations
    SET status = 'failed', last_error = ${JSON.stringify(LEASE_EXPIRED)}::jsonb, lease_token = NULL,
      lease_expires_at = NULL
    WHERE id = (
      SELECT id FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND ${isExhausted} AND lease_expires_at <= now()
      ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING ${OPERATION_COLUMNS}, room_id AS "roomId", participant_id AS "participantId",
      environment_id AS "environmentId",
      (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"`;
  return row ?? null;
}
