import {
  startsNewRun,
  type OperationKind,
  type OperationState,
  type OperationStatus,
  type Tenant,
} from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { newIdInSql } from '../client/sql.js';
import { readWanted, type WantedRow } from '../client/wanted-rows.js';
import { Prisma } from '../generated/client.js';
import { touchSessions } from '../sessions/session-connection.js';
import { isRoomOpen } from '../rooms/room.sql.js';
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

const STATE = { id: true, kind: true, status: true, attempts: true, lastError: true, completedAt: true } as const;

export async function findOperation(db: Db, tenant: Tenant, operationId: string): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { id: operationId, environmentId: tenant.environmentId },
    select: STATE,
  });
  return operation as OperationState | null;
}

/**
 * @param kind `room.end` for ids of rooms, `participant.remove` for ids of participants.
 * @returns the operations of the rooms or participants, in the order of the requests; null without one.
 */
export function findOperationsOf(
  db: TypedSql,
  kind: OperationKind,
  wanted: readonly WantedRow[],
): Promise<(OperationState | null)[]> {
  // The kind is a literal, so that PostgreSQL can use the partial indexes.
  const isWanted =
    kind === 'room.end'
      ? Prisma.sql`room_id = wanted.id AND kind = 'room.end'`
      : Prisma.sql`participant_id = wanted.id AND kind = 'participant.remove'`;
  return readWanted<OperationState>(
    wanted,
    (table) => db.$queryRaw`
      SELECT wanted.at::int AS at, o.* FROM ${table} CROSS JOIN LATERAL (
        SELECT ${OPERATION_COLUMNS} FROM runtime_operations
        WHERE ${isWanted} AND environment_id = wanted.environment_id
      ) o`,
  );
}

/**
 * Accepts the end of a room. The room's status and the operation change together, so from this commit on no token is
 * issued and no participant joins. The first request takes one statement; a repeated one takes a transaction.
 * @returns null when the environment has no such room.
 */
export async function acceptRoomEnd(
  database: Database,
  tenant: Tenant,
  roomId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  const rooms = endRooms(Prisma.sql`id = ${roomId} AND environment_id = ${tenant.environmentId}`);
  const [created] = await accept(database.sql, 'room.end', rooms, now, tenant.traceparent);
  if (created !== undefined) return accepted(created, created.roomVersion);
  return acceptAgain(database, { environmentId: tenant.environmentId, roomId, kind: 'room.end' });
}

/** The expression of rooms_empty_until_idx. */
const EMPTY_UNTIL = Prisma.sql`(empty_since AT TIME ZONE 'UTC' + empty_timeout_seconds * interval '1 second')`;

/**
 * Accepts the end of open rooms that have been empty for too long, also of those that nobody has joined. Writes the same
 * operation as a request, in one conditional statement, so that a concurrent join wins. Concurrent calls share the
 * rooms. The conditions are those of rooms_empty_idx and rooms_empty_until_idx.
 * @param emptyMs for rooms without a time-out of their own; 0 keeps them open.
 * @param limit of rooms of either kind.
 */
export function acceptEmptyRoomEnds(db: TypedSql, emptyMs: number, limit: number, now: Date): PromiseLike<NewRow[]> {
  const empty = Prisma.sql`id = ANY(ARRAY(
        SELECT id FROM rooms
        WHERE ${isRoomOpen} AND empty_timeout_seconds IS NULL AND ${emptyMs}::int > 0
          AND empty_since <= now() - ${emptyMs}::int * interval '1 millisecond'
        ORDER BY empty_since LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
      ) || ARRAY(
        SELECT id FROM rooms
        WHERE ${isRoomOpen} AND empty_since IS NOT NULL AND empty_timeout_seconds IS NOT NULL
          AND ${EMPTY_UNTIL} <= now() AT TIME ZONE 'UTC'
        ORDER BY ${EMPTY_UNTIL} LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
      ))`;
  return accept(db, 'room.end', endRooms(empty), now);
}

/** The CTE `subject` of {@link accept}: open rooms that end. */
function endRooms(which: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`subject AS (
      UPDATE rooms SET status = 'ending', version = version + 1 WHERE ${which} AND ${isRoomOpen}
      RETURNING environment_id, id AS room_id, NULL::text AS participant_id, version
    )`;
}

/**
 * Accepts the removal of a participant: from this commit on the participant is blocked and its tokens are revoked. The
 * first request takes one statement; a repeated one takes a transaction.
 * @returns null when the room has no such participant.
 */
export async function acceptParticipantRemoval(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  const at = now.toISOString();
  const participant = Prisma.sql`subject AS (
      UPDATE participants SET removed_at = ${at}::timestamptz
      WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
        AND removed_at IS NULL
      RETURNING environment_id, room_id, id AS participant_id, NULL::int AS version
    ), tokens AS (
      UPDATE participant_tokens SET revoked_at = ${at}::timestamptz
      WHERE revoked_at IS NULL AND participant_id IN (SELECT participant_id FROM subject)
    )`;
  const [created] = await accept(database.sql, 'participant.remove', participant, now, tenant.traceparent);
  if (created !== undefined) {
    // A statement of its own, which sees a session whose join the one before has waited for. Best effort: the clean-up
    // begins with it, too.
    return accepted(created, await touchSessions(database.sql, participantId).catch(() => null));
  }
  const { environmentId } = tenant;
  return acceptAgain(database, { environmentId, roomId, participantId, kind: 'participant.remove' });
}

type AcceptedRow = OperationState & WakeableOperation;
const ACCEPTED = Prisma.sql`${OPERATION_COLUMNS}, ${WAKE_UP_COLUMNS}`;
type NewRow = AcceptedRow & { roomId: string; roomVersion: number | null };

/**
 * Adds an operation for each subject, in the statement that changes it.
 * @param subjects the CTE `subject (environment_id, room_id, participant_id, version)`; the version is the room's.
 */
function accept(
  db: TypedSql,
  kind: OperationKind,
  subjects: Prisma.Sql,
  now: Date,
  traceparent?: string | null,
): PromiseLike<NewRow[]> {
  return db.$queryRaw<NewRow[]>`
    WITH ${subjects}
    INSERT INTO runtime_operations (id, environment_id, room_id, participant_id, kind, status, created_at, traceparent)
    SELECT ${newIdInSql('operation')}, environment_id, room_id, participant_id, ${kind}, 'pending',
      ${now.toISOString()}::timestamptz, ${traceparent ?? null}::text
    FROM subject
    RETURNING ${ACCEPTED}, room_id AS "roomId",
      (SELECT version FROM subject WHERE subject.room_id = runtime_operations.room_id) AS "roomVersion"`;
}

function accepted(row: AcceptedRow, roomVersion: number | null): AcceptedOperation {
  return { operation: row, wake: row, roomVersion };
}

/**
 * Handles a repeated request for the same clean-up: one that has failed begins a new run.
 * @returns null when there is no such clean-up, because its room or participant does not exist.
 */
async function acceptAgain(
  { sql, prisma }: Database,
  subject: { environmentId: string; roomId: string; participantId?: string; kind: OperationKind },
): Promise<AcceptedOperation | null> {
  const find = () => prisma.runtimeOperation.findFirst({ where: subject, select: STATE });
  const asItIs = (operation: unknown) => ({ operation: operation as OperationState, wake: null, roomVersion: null });
  const operation = await find();
  if (operation === null) return null;
  if (!startsNewRun(operation.status as OperationStatus)) return asItIs(operation);
  const rerun = await makeDue(sql, operation.id, 'failed');
  // Without a row, a concurrent request has begun the run.
  return rerun === null ? asItIs(await find()) : accepted(rerun, null);
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
