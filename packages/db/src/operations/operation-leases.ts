import { ATTEMPTS_PER_RUN, type OperationError, type OperationKind, type OperationState } from '@callplane/core';
import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { WakeableOperation } from './operations.repository.js';

/** A row that this worker holds. All lease times are PostgreSQL's, so that workers need not agree on the time. */
export interface ClaimedOperation {
  id: string;
  kind: OperationKind;
  environmentId: string;
  projectId: string;
  roomId: string;
  participantId: string | null;
  /** Of the request that asked for it: what the clean-up causes is written under it. */
  traceparent: string | null;
  run: number;
  runAttempts: number;
  attempts: number;
  /** Fencing token: whoever comes back late with an old one writes nothing. */
  leaseToken: string;
  /** How long after it was due the claim came. */
  lagMs: number;
}

/** Thrown inside a transaction when the lease has run out or passed to another worker: nothing may be written. */
export class LeaseLost extends Error {
  constructor(operationId: string) {
    super(`the lease on ${operationId} is lost`);
    this.name = 'LeaseLost';
  }
}

/** A lease holds while its token stands in the row and its time has not run out. */
const holds = (claim: Pick<ClaimedOperation, 'id' | 'leaseToken'>): Prisma.Sql =>
  Prisma.sql`id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid AND lease_expires_at > now()`;

/**
 * Takes a row that is due and free, and counts the attempt: a worker that dies right after has used one.
 * @returns null when the row is not due, held by another, or settled.
 */
export async function claimOperation(
  db: Db,
  operationId: string,
  leaseToken: string,
  leaseMs: number,
): Promise<ClaimedOperation | null> {
  const [claimed] = await db.$queryRaw<ClaimedOperation[]>`
    UPDATE runtime_operations
    SET lease_token = ${leaseToken}::uuid, lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond',
      attempts = attempts + 1, run_attempts = run_attempts + 1
    WHERE id = ${operationId} AND status = 'pending' AND due_at <= now()
      AND (lease_expires_at IS NULL OR lease_expires_at <= now()) AND run_attempts < ${ATTEMPTS_PER_RUN}
    RETURNING id, kind, environment_id AS "environmentId",
      (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId", room_id AS "roomId", participant_id AS "participantId",
      traceparent, run, run_attempts AS "runAttempts", attempts, lease_token::text AS "leaseToken",
      (extract(epoch FROM now() - due_at) * 1000)::int AS "lagMs"`;
  return claimed ?? null;
}

/** In how many milliseconds a pending row that nobody holds is due; null when there is nothing to wait for. */
export async function dueInMs(db: Db, operationId: string): Promise<number | null> {
  const [row] = await db.$queryRaw<{ ms: number }[]>`
    SELECT ceil(extract(epoch FROM due_at - now()) * 1000)::int AS ms FROM runtime_operations
    WHERE id = ${operationId} AND status = 'pending' AND lease_token IS NULL AND due_at > now()`;
  return row?.ms ?? null;
}

/**
 * First thing in every transaction of a step: holds the row until the commit, so that nobody can claim it meanwhile.
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
 * The attempt failed and another follows after the delay. The wake-up is counted as sent for the moment it is due.
 * @throws LeaseLost
 */
export async function settleRetry(
  db: Db,
  claim: ClaimedOperation,
  delayMs: number,
  error: OperationError,
): Promise<WakeableOperation> {
  const [row] = await db.$queryRaw<WakeableOperation[]>`
    UPDATE runtime_operations
    SET due_at = now() + ${delayMs}::int * interval '1 millisecond',
      woken_at = now() + ${delayMs}::int * interval '1 millisecond', wake_ups = 1,
      last_error = ${JSON.stringify(error)}::jsonb, lease_token = NULL, lease_expires_at = NULL
    WHERE ${holds(claim)}
    RETURNING id, kind, run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
  if (row === undefined) throw new LeaseLost(claim.id);
  return row;
}

/**
 * The run's last attempt failed.
 * @throws LeaseLost
 */
export async function settleFailed(db: Db, claim: ClaimedOperation, error: OperationError): Promise<OperationState> {
  const [settled] = await db.$queryRaw<OperationState[]>`
    UPDATE runtime_operations
    SET status = 'failed', last_error = ${JSON.stringify(error)}::jsonb, lease_token = NULL, lease_expires_at = NULL
    WHERE ${holds(claim)}
    RETURNING id, kind, status, attempts, last_error AS "lastError", completed_at AS "completedAt"`;
  if (settled === undefined) throw new LeaseLost(claim.id);
  return settled;
}
