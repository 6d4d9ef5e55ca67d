import type { OperationError, OperationKind, OperationState, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted, isUnleased, OPERATION_COLUMNS, WAKEABLE_COLUMNS } from './operation.sql.js';
import type { WakeableOperation } from './operations.repository.js';

/** All lease times are PostgreSQL's, so the workers' clocks need not agree. */
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

/** Rolls the transaction back: the lease has expired or passed to another worker. */
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
export async function assertLease(tx: TypedSql, claim: ClaimedOperation): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM runtime_operations WHERE ${holds(claim)} FOR NO KEY UPDATE`;
  if (rows.length === 0) throw new LeaseLost(claim.id);
}

/** @throws LeaseLost */
export async function settleCompleted(tx: TypedSql, claim: ClaimedOperation, now: Date): Promise<void> {
  const settled = await tx.$executeRaw`
    UPDATE runtime_operations
    SET status = 'completed', completed_at = ${now.toISOString()}::timestamptz, last_error = NULL, lease_token = NULL, lease_expires_at = NULL
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

/**
 * The operations that a worker may claim now: the first of every environment before the second of any. Reads all due
 * rows, so that a tenant with many of them cannot hide those of another.
 * @returns `place` among those of the environment, from 1 on; `lateMs` since it became due, or its last lease expired.
 */
export function findDueOperations(
  db: TypedSql,
  limit: number,
): PromiseLike<(WakeableOperation & { place: number; lateMs: number })[]> {
  return db.$queryRaw`
    SELECT ${WAKEABLE_COLUMNS}, place::int,
      (extract(epoch FROM now() - greatest(due_at, lease_expires_at)) * 1000)::float8 AS "lateMs"
    FROM (
      SELECT *, row_number() OVER (PARTITION BY environment_id ORDER BY due_at) AS place
      FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND ${isUnleased} AND NOT ${isExhausted}
    ) due
    ORDER BY place, due_at LIMIT ${limit}::int`;
}

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

const LEASE_EXPIRED: OperationError = {
  code: 'LEASE_EXPIRED',
  message: 'The last attempt was not settled in time: its worker stopped.',
};

type ExhaustedOperation = OperationState & Tenant & Pick<ClaimedOperation, 'roomId' | 'participantId'>;

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
