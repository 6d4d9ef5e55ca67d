import { startsNewRun, type OperationKind, type OperationState, type Tenant } from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { newIdInSql } from '../client/sql.js';
import { readRequested, type RowRequest } from '../client/row-requests.js';
import { Prisma } from '../generated/client.js';
import { isUnleased, OPERATION_COLUMNS, WAKE_UP_COLUMNS } from './operation.sql.js';

export interface WakeableOperation {
  id: string;
  environmentId: string;
  kind: OperationKind;
  run: number;
  runAttempts: number;
}

/** The result of a request for a clean-up. `wake` is set when a worker must be woken for it. */
export interface AcceptedOperation {
  operation: OperationState;
  wake: WakeableOperation | null;
  /** The room's version after the request; null if it is not known. */
  roomVersion: number | null;
}

export async function findOperation(db: Db, tenant: Tenant, operationId: string): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { id: operationId, environmentId: tenant.environmentId },
    select: { id: true, kind: true, status: true, attempts: true, lastError: true, completedAt: true },
  });
  return operation as OperationState | null;
}

/** @returns the operations of the subjects, in the order of the requests; null without one. */
export function findOperationsOf(
  db: TypedSql,
  kind: OperationKind,
  requests: readonly RowRequest[],
): Promise<(OperationState | null)[]> {
  return readRequested<OperationState>(
    requests,
    (table) => db.$queryRaw`
      SELECT request.at::int AS at, o.* FROM ${table} CROSS JOIN LATERAL (
        SELECT ${OPERATION_COLUMNS} FROM runtime_operations
        WHERE subject_id = request.id AND kind = ${kind} AND environment_id = request.environment_id
      ) o`,
  );
}

type AcceptedRow = OperationState & WakeableOperation;
const ACCEPTED = Prisma.sql`${OPERATION_COLUMNS}, ${WAKE_UP_COLUMNS}`;
export type NewOperation = AcceptedRow & { roomId: string; roomVersion: number | null };

/**
 * Adds an operation for each subject, in the statement that changes it.
 * @param subjects the CTE `subject (id, environment_id, room_id, participant_id, version)`; the version is the room's.
 */
export function insertOperations(
  db: TypedSql,
  kind: OperationKind,
  subjects: Prisma.Sql,
  now: Date,
  traceparent?: string | null,
  input: object | null = null,
): PromiseLike<NewOperation[]> {
  return db.$queryRaw<NewOperation[]>`
    WITH ${subjects}
    INSERT INTO runtime_operations (id, environment_id, room_id, participant_id, kind, subject_id, status, created_at,
      traceparent, input)
    SELECT ${newIdInSql('operation')}, environment_id, room_id, participant_id, ${kind}, subject.id, 'pending',
      ${now.toISOString()}::timestamptz, ${traceparent ?? null}::text,
      ${input === null ? null : JSON.stringify(input)}::jsonb
    FROM subject
    RETURNING ${ACCEPTED}, room_id AS "roomId",
      (SELECT version FROM subject WHERE subject.id = runtime_operations.subject_id) AS "roomVersion"`;
}

export function accepted(row: AcceptedRow, roomVersion: number | null): AcceptedOperation {
  return { operation: row, wake: row, roomVersion };
}

/**
 * Handles a repeated request for the same clean-up: one that has failed begins a new run.
 * @returns null when there is no such clean-up, because its room or participant does not exist.
 */
export async function acceptAgain(
  { sql }: Database,
  {
    environmentId,
    roomId,
    subjectId,
    kind,
  }: { environmentId: string; roomId: string; subjectId: string; kind: OperationKind },
): Promise<AcceptedOperation | null> {
  const find = async (): Promise<AcceptedOperation | null> => {
    const [operation] = await sql.$queryRaw<OperationState[]>`
      SELECT ${OPERATION_COLUMNS} FROM runtime_operations
      WHERE subject_id = ${subjectId} AND kind = ${kind} AND room_id = ${roomId} AND environment_id = ${environmentId}`;
    return operation === undefined ? null : { operation, wake: null, roomVersion: null };
  };
  const found = await find();
  if (found === null || !startsNewRun(found.operation.status)) return found;
  const rerun = await makeDue(sql, found.operation.id, 'failed');
  // Without a row, a concurrent request has begun the run.
  return rerun === null ? find() : accepted(rerun, null);
}

/**
 * Makes an operation due now: a failed one in a new run, a pending one instead of at its retry time. The attempt of the
 * latter counts like any other.
 * @returns null when it has another status, or when a worker currently holds it.
 */
export async function makeDue(
  db: TypedSql,
  operationId: string,
  status: 'failed' | 'pending',
): Promise<AcceptedRow | null> {
  const [row] = await db.$queryRaw<AcceptedRow[]>`
    UPDATE runtime_operations
    SET status = 'pending', due_at = now(), run = CASE WHEN status = 'failed' THEN run + 1 ELSE run END,
      run_attempts = CASE WHEN status = 'failed' THEN 0 ELSE run_attempts END
    WHERE id = ${operationId} AND status = ${status} AND ${isUnleased}
    RETURNING ${ACCEPTED}`;
  return row ?? null;
}
