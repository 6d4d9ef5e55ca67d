import {
  decideRequest,
  newId,
  type OperationKind,
  type OperationState,
  type OperationStatus,
  type Tenant,
} from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** What a wake-up needs to know of a row. */
export interface WakeableOperation {
  id: string;
  kind: OperationKind;
  run: number;
  runAttempts: number;
  wakeUps: number;
}

/** The answer to asking for a clean-up. `wake` is set when a worker has to be told of it. */
export interface AcceptedOperation {
  operation: OperationState;
  wake: WakeableOperation | null;
}

const SHOWN = { id: true, kind: true, status: true, attempts: true, lastError: true, completedAt: true } as const;

export async function findRoomOperation(db: Db, tenant: Tenant, roomId: string): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { roomId, environmentId: tenant.environmentId, kind: 'room.end' },
    select: SHOWN,
  });
  return operation as OperationState | null;
}

export async function findParticipantOperation(
  db: Db,
  tenant: Tenant,
  participantId: string,
): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { participantId, environmentId: tenant.environmentId, kind: 'participant.remove' },
    select: SHOWN,
  });
  return operation as OperationState | null;
}

/**
 * Accepts the end of a room: its status and the operation change together, so that from this commit on nobody gets a
 * token and nobody joins. One statement for the first request; a repeated one takes the slower way.
 * @returns null when the environment has no such room.
 */
export async function acceptRoomEnd(
  database: Database,
  tenant: Tenant,
  roomId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  const [created] = await database.prisma.$queryRaw<AcceptedRow[]>`
    WITH room AS (
      UPDATE rooms SET status = 'ending'
      WHERE id = ${roomId} AND environment_id = ${tenant.environmentId} AND status IN ('created', 'active')
      RETURNING id
    )
    INSERT INTO runtime_operations (id, environment_id, room_id, kind, status, created_at, traceparent)
    SELECT ${newId('operation')}, ${tenant.environmentId}, id, 'room.end', 'pending', ${now.toISOString()}::timestamptz,
      ${tenant.traceparent ?? null}::text
    FROM room
    RETURNING ${ACCEPTED}`;
  if (created !== undefined) return accepted(created);
  return database.transaction(async (tx) => {
    // Requests for the same room queue up here; rows that refer to the room can still be written.
    const rooms = await tx.$queryRaw<unknown[]>`
      SELECT 1 FROM rooms WHERE id = ${roomId} AND environment_id = ${tenant.environmentId} FOR NO KEY UPDATE`;
    return rooms.length === 0 ? null : acceptAgain(tx, { roomId, kind: 'room.end' });
  });
}

/** A room whose end was accepted because nobody is in it. */
export interface EmptyRoomEnd extends WakeableOperation {
  roomId: string;
}

/**
 * Accepts the end of rooms that somebody was in and that have been empty for so long: the same operation, in one
 * conditional statement, so that a join which comes in between wins. Several at once share the rooms.
 */
export function acceptEmptyRoomEnds(
  db: TypedSql,
  emptyMs: number,
  limit: number,
  now: Date,
): PromiseLike<EmptyRoomEnd[]> {
  return db.$queryRaw<EmptyRoomEnd[]>`
    WITH room AS (
      UPDATE rooms SET status = 'ending'
      WHERE id = ANY(ARRAY(
        SELECT id FROM rooms
        WHERE status = 'active' AND empty_since <= now() - ${emptyMs}::int * interval '1 millisecond'
        ORDER BY empty_since LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
      ))
      RETURNING id, environment_id
    )
    INSERT INTO runtime_operations (id, environment_id, room_id, kind, status, created_at)
    SELECT callplane_typeid('op'), environment_id, id, 'room.end', 'pending', ${now.toISOString()}::timestamptz
    FROM room
    RETURNING id, kind, run, run_attempts AS "runAttempts", wake_ups AS "wakeUps", room_id AS "roomId"`;
}

/**
 * Accepts the removal of a participant: its identity is blocked and its tokens are revoked from this commit on. One
 * statement for the first request; a repeated one takes the slower way.
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
  const [created] = await database.prisma.$queryRaw<AcceptedRow[]>`
    WITH participant AS (
      UPDATE participants SET removed_at = ${at}::timestamptz
      WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
        AND removed_at IS NULL
      RETURNING id
    ), tokens AS (
      UPDATE participant_tokens SET revoked_at = ${at}::timestamptz
      WHERE revoked_at IS NULL AND participant_id IN (SELECT id FROM participant)
    )
    INSERT INTO runtime_operations (id, environment_id, room_id, participant_id, kind, status, created_at, traceparent)
    SELECT ${newId('operation')}, ${tenant.environmentId}, ${roomId}, id, 'participant.remove', 'pending',
      ${at}::timestamptz, ${tenant.traceparent ?? null}::text
    FROM participant
    RETURNING ${ACCEPTED}`;
  if (created !== undefined) return accepted(created);
  return database.transaction(async (tx) => {
    const participants = await tx.$queryRaw<unknown[]>`
      SELECT 1 FROM participants
      WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
      FOR NO KEY UPDATE`;
    return participants.length === 0 ? null : acceptAgain(tx, { participantId, kind: 'participant.remove' });
  });
}

type AcceptedRow = OperationState & WakeableOperation;

/** What {@link AcceptedRow} holds, of a row that was just written. */
const ACCEPTED = Prisma.sql`id, kind, status, attempts, last_error AS "lastError", completed_at AS "completedAt", run,
  run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;

function accepted(row: AcceptedRow): AcceptedOperation {
  return { operation: row, wake: row };
}

/** A request for what has been asked for before. */
async function acceptAgain(
  tx: Prisma.TransactionClient,
  subject: { roomId: string; kind: 'room.end' } | { participantId: string; kind: 'participant.remove' },
): Promise<AcceptedOperation> {
  const existing = await tx.runtimeOperation.findFirstOrThrow({ where: subject });
  if (decideRequest(existing.status as OperationStatus) !== 'rerun') {
    return { operation: existing as OperationState, wake: null };
  }
  const [rerun] = await tx.$queryRaw<AcceptedRow[]>`
    UPDATE runtime_operations
    SET status = 'pending', run = run + 1, run_attempts = 0, wake_ups = 1, due_at = now(), woken_at = now()
    WHERE id = ${existing.id}
    RETURNING ${ACCEPTED}`;
  if (rerun === undefined) throw new Error(`${existing.id} is gone`);
  return accepted(rerun);
}
