import type { MoveRefusal, OperationError, OperationKind, OperationState, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { literals } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import { inTurns, isExhausted, isUnleased, OPERATION_COLUMNS, WAKEABLE_COLUMNS } from './operation.sql.js';
import type { WakeableOperation } from './operations.repository.js';

/** All lease times are PostgreSQL's, so the workers' clocks need not agree. */
export interface ClaimedOperation {
  id: string;
  kind: OperationKind;
  environmentId: string;
  projectId: string;
  roomId: string;
  participantId: string | null;
  /** The room, the participant or the recording that the operation is about. */
  subjectId: string;
  /** Details of the request, such as a `MoveInput`; null for kinds that need no more than a subject. */
  input: unknown;
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

/** Another attempt would not help: the operation fails at once, with this code. */
export class OperationRefused extends Error {
  constructor(readonly code: MoveRefusal) {
    super(`the operation is refused: ${code}`);
    this.name = 'OperationRefused';
  }
}

/**
 * A lease is valid while the row holds its token and its time has not expired. (For deliveries the token alone decides,
 * because a late answer of a receiver still counts.)
 */
const holds = (claim: Pick<ClaimedOperation, 'id' | 'leaseToken'>): Prisma.Sql =>
  Prisma.sql`id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid AND lease_expires_at > now()`;

const PROJECT_ID = Prisma.sql`
  (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"`;

/**
 * Claims a due row without a valid lease and counts the attempt, so that a worker that dies right afterwards has used
 * one.
 * @param isTurn whether the claim is the latest turn of its environment
 * @returns null when the row is not due, leased to another worker, or settled.
 */
export async function claimOperation(
  db: TypedSql,
  operationId: string,
  leaseToken: string,
  leaseMs: number,
  isTurn = false,
): Promise<ClaimedOperation | null> {
  const [claimed] = await db.$queryRaw<ClaimedOperation[]>`
    UPDATE runtime_operations
    SET lease_token = ${leaseToken}::uuid, lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond',
      claimed_at = CASE WHEN ${isTurn} THEN now() ELSE claimed_at END,
      attempts = attempts + 1, run_attempts = run_attempts + 1
    WHERE id = ${operationId} AND status = 'pending' AND due_at <= now()
      AND ${isUnleased} AND NOT ${isExhausted}
    RETURNING id, kind, environment_id AS "environmentId", ${PROJECT_ID},
      room_id AS "roomId", participant_id AS "participantId", subject_id AS "subjectId", input, traceparent, run, run_attempts AS "runAttempts",
      lease_token::text AS "leaseToken",
      (extract(epoch FROM now() - due_at) * 1000)::int AS "lagMs"`;
  return claimed ?? null;
}

/**
 * Claims the operation of a kind whose turn it is: environments take turns, so that one with many long operations does
 * not delay another's.
 * @returns null if none is due
 */
export async function claimInTurn(
  db: TypedSql,
  kind: OperationKind,
  leaseToken: string,
  leaseMs: number,
): Promise<ClaimedOperation | null> {
  const isDue = Prisma.sql`AND due_at <= now() AND NOT ${isExhausted}`;
  for (;;) {
    const [next] = await db.$queryRaw<{ id: string }[]>`
      SELECT id FROM (${inTurns(kind, isDue)}) waiting ORDER BY position LIMIT 1`;
    if (next === undefined) return null;
    const claimed = await claimOperation(db, next.id, leaseToken, leaseMs, true);
    // Otherwise another worker has it.
    if (claimed !== null) return claimed;
  }
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

/**
 * Extends a lease from now on, for an attempt that takes longer than one.
 * @throws LeaseLost
 */
export async function renewLease(db: TypedSql, claim: ClaimedOperation, leaseMs: number): Promise<void> {
  const rows = await db.$queryRaw<unknown[]>`
    UPDATE runtime_operations SET lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond'
    WHERE ${holds(claim)} RETURNING 1`;
  if (rows.length === 0) throw new LeaseLost(claim.id);
}

/**
 * How an attempt ends: the operation is completed, pending again after a delay, or failed after the run's last attempt.
 */
type AttemptEnd =
  | { status: 'completed'; now: Date }
  | { status: 'pending'; error: OperationError; delayMs: number }
  | { status: 'failed'; error: OperationError };

const LEASE_EXPIRED: OperationError = {
  code: 'LEASE_EXPIRED',
  message: 'The last attempt was not settled in time: its worker stopped.',
};

type SettledOperation = OperationState & Tenant & Pick<ClaimedOperation, 'roomId' | 'participantId' | 'subjectId'>;

/** @throws LeaseLost */
export async function settleOperation(
  db: TypedSql,
  claim: ClaimedOperation,
  end: AttemptEnd,
): Promise<SettledOperation> {
  const settled = await settle(db, holds(claim), end);
  if (settled === null) throw new LeaseLost(claim.id);
  return settled;
}

/**
 * Settles one row as failed whose worker died in the run's last attempt, because no attempt is left.
 * @returns null when there is no such row.
 */
export function settleExhaustedOperation(
  db: TypedSql,
  kinds: readonly OperationKind[],
): Promise<SettledOperation | null> {
  const which = Prisma.sql`id = (
      SELECT id FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND ${isExhausted} AND lease_expires_at <= now()
        AND kind IN (${literals(kinds)})
      ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    )`;
  return settle(db, which, { status: 'failed', error: LEASE_EXPIRED });
}

async function settle(db: TypedSql, which: Prisma.Sql, end: AttemptEnd): Promise<SettledOperation | null> {
  const completedAt = end.status === 'completed' ? end.now.toISOString() : null;
  const lastError = end.status === 'completed' ? null : JSON.stringify(end.error);
  const delayMs = end.status === 'pending' ? end.delayMs : null;
  const [settled] = await db.$queryRaw<SettledOperation[]>`
    UPDATE runtime_operations
    SET status = ${end.status}, completed_at = ${completedAt}::timestamptz, last_error = ${lastError}::jsonb,
      due_at = coalesce(now() + ${delayMs}::int * interval '1 millisecond', due_at),
      lease_token = NULL, lease_expires_at = NULL
    WHERE ${which}
    RETURNING ${OPERATION_COLUMNS}, room_id AS "roomId", participant_id AS "participantId",
      subject_id AS "subjectId", environment_id AS "environmentId", ${PROJECT_ID}`;
  return settled ?? null;
}

/**
 * The operations of these kinds that a worker may claim now: the first of every environment before the second of any.
 * Reads all due rows, so that a tenant with many of them cannot hide another's operations.
 * @returns `place` within the environment, from 1 on; `lateMs` since it became due, or its last lease expired.
 */
export function findDueOperations(
  db: TypedSql,
  kinds: readonly OperationKind[],
  limit: number,
): PromiseLike<(WakeableOperation & { place: number; lateMs: number })[]> {
  return db.$queryRaw`
    SELECT ${WAKEABLE_COLUMNS}, place::int,
      (extract(epoch FROM now() - greatest(due_at, lease_expires_at)) * 1000)::float8 AS "lateMs"
    FROM (
      SELECT *, row_number() OVER (PARTITION BY environment_id ORDER BY due_at) AS place
      FROM runtime_operations
      WHERE status = 'pending' AND due_at <= now() AND ${isUnleased} AND NOT ${isExhausted}
        AND kind IN (${literals(kinds)})
    ) due
    ORDER BY place, due_at LIMIT ${limit}::int`;
}
