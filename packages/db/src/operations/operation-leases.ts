import type { OperationError, OperationKind, OperationState } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted, isUnleased, OPERATION_COLUMNS } from './operation.sql.js';

/**
 * An operation that this worker has claimed. All lease times are PostgreSQL's, so the workers' clocks need not agree.
 */
export interface ClaimedOperation {
  id: string;
  kind: OperationKind;
  environmentId: string;
  projectId: string;
  roomId: string;
  participantId: string | null;
  /** Trace context of the request that created the operation; the events of the clean-up carry it. */
  traceparent: string | null;
  run: number;
  runAttempts: number;
  /** Fencing token: a worker with an outdated token cannot write. */
  leaseToken: string;
  /** Time from the due time to the claim. */
  lagMs: number;
}

/**
 * Thrown inside a transaction when the lease has expired or passed to another worker, so that the transaction writes
 * nothing.
 */
export class LeaseLost extends Error {
  constructor(operationId: string) {
    super(`the lease on ${operationId} is lost`);
    this.name = 'LeaseLost';
  }
}

/**
 * A lease is valid while the row holds its token and its time has not expired. (For deliveries the token alone decides,
 * because a late answer of a receiver still counts.)
 */
const holds = (claim: Pick<ClaimedOperation, 'id' | 'leaseToken'>): Prisma.Sql =>
  Prisma.sql`id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid AND lease_expires_at > now()`;

/**
 * Claims a due row without a valid lease and counts the attempt, so that a worker that dies right afterwards has used
 * one.
 * @returns null when the row is not due, leased to another worker, or settled.
 */
export async function claimOperation(
  db: TypedSql,
  operationId: string,
  leaseToken: string,
  leaseMs: number,
): Promise<ClaimedOperation | null> {
  const [claimed] = await db.$queryRaw<ClaimedOperation[]>`
    UPDATE runtime_operations
    SET lease_token = ${leaseToken}::uuid, lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond',
      attempts = attempts + 1, run_attempts = run_attempts + 1
    WHERE id = ${operationId} AND status = 'pending' AND due_at <= now()
      AND ${isUnleased} AND NOT ${isExhausted}
    RETURNING id, kind, environment_id AS "environmentId",
      (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId",
      room_id AS "roomId", participant_id AS "participantId", traceparent, run, run_attempts AS "runAttempts",
      lease_token::text AS "leaseToken",
      (extract(epoch FROM now() - due_at) * 1000)::int AS "lagMs"`;
  return claimed ?? null;
}

/**
 * Locks the row until the commit, so that no other worker can claim it meanwhile. Every transaction of a step begins
 * with it, or with a function that settles the row under the lease.
 * @throws LeaseLost
 */
export async function assertLease(tx: Prisma.TransactionClient, claim: ClaimedOperation): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM runtime_operations WHERE ${holds(claim)} FOR NO KEY UPDATE`;
  if (rows.length === 0) throw new LeaseLost(claim.id);
}

/** @throws LeaseLost */
export async function settleCompleted(tx: Prisma.TransactionClient, claim: ClaimedOperation, now: Date): Promise<void> {
  const settled = await tx.$executeRaw`
    UPDATE runtime_operations
    SET status = 'completed', completed_at = ${now}, last_error = NULL, lease_token = NULL, lease_expires_at = NULL
    WHERE ${holds(claim)}`;
  if (settled === 0) throw new LeaseLost(claim.id);
}

/**
 * Settles a failed attempt that is followed by another one after the delay.
 * @throws LeaseLost
 */
export async function settleRetry(
  db: TypedSql,
  claim: ClaimedOperation,
  delayMs: number,
  error: OperationError,
): Promise<void> {
  const settled = await db.$executeRaw`
    UPDATE runtime_operations
    SET due_at = now() + ${delayMs}::int * interval '1 millisecond', last_error = ${JSON.stringify(error)}::jsonb,
      lease_token = NULL, lease_expires_at = NULL
    WHERE ${holds(claim)}`;
  if (settled === 0) throw new LeaseLost(claim.id);
}

/**
 * Settles the operation as failed after the run's last attempt.
 * @throws LeaseLost
 */
export async function settleFailed(
  db: TypedSql,
  claim: ClaimedOperation,
  error: OperationError,
): Promise<OperationState> {
  const [settled] = await db.$queryRaw<OperationState[]>`
    UPDATE runtime_operations
    SET status = 'failed', last_error = ${JSON.stringify(error)}::jsonb, lease_token = NULL, lease_expires_at = NULL
    WHERE ${holds(claim)}
    RETURNING ${OPERATION_COLUMNS}`;
  if (settled === undefined) throw new LeaseLost(claim.id);
  return settled;
}
