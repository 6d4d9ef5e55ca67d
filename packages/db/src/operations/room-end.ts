import type { RoomState, Tenant } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen, ROOM_COLUMNS } from '../rooms/room.sql.js';
import {
  acceptAgain,
  accepted,
  insertOperations,
  type AcceptedOperation,
  type NewOperation,
} from './operations.repository.js';

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
  const [created] = await insertOperations(database.sql, 'room.end', rooms, now, tenant.traceparent);
  if (created !== undefined) return accepted(created, created.roomVersion);
  return acceptAgain(database, { environmentId: tenant.environmentId, roomId, subjectId: roomId, kind: 'room.end' });
}

/** The expression of rooms_empty_until_idx. */
const EMPTY_UNTIL = Prisma.sql`(empty_since AT TIME ZONE 'UTC' + empty_timeout_seconds * interval '1 second')`;

/**
 * Accepts the end of open rooms that have been empty for too long, also of rooms that nobody has joined. Writes the
 * same operation as a request, in one conditional statement, so that a concurrent join wins. Concurrent calls share the
 * rooms. The conditions repeat rooms_empty_idx and rooms_empty_until_idx.
 * @param emptyMs for rooms without a time-out of their own; 0 keeps them open.
 * @param limit of rooms of either kind.
 */
export function acceptEmptyRoomEnds(
  db: TypedSql,
  emptyMs: number,
  limit: number,
  now: Date,
): PromiseLike<NewOperation[]> {
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
  return insertOperations(db, 'room.end', endRooms(empty), now);
}

/** The CTE `subject` of {@link insertOperations}: open rooms that end. */
function endRooms(which: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`subject AS (
      UPDATE rooms SET status = 'ending', version = version + 1 WHERE ${which} AND ${isRoomOpen}
      RETURNING id, environment_id, id AS room_id, NULL::text AS participant_id, version
    )`;
}

/**
 * Marks a room whose clean-up is complete as ended. Call it in the transaction that settles the operation.
 * @returns null when the room is not ending.
 */
export async function markRoomEnded(
  tx: TypedSql,
  { environmentId }: Tenant,
  roomId: string,
  now: Date,
): Promise<RoomState | null> {
  const [room] = await tx.$queryRaw<RoomState[]>`
    UPDATE rooms SET status = 'ended', ended_at = ${now.toISOString()}::timestamptz
    WHERE rooms.id = ${roomId} AND rooms.environment_id = ${environmentId} AND rooms.status = 'ending'
    RETURNING ${ROOM_COLUMNS}`;
  return room ?? null;
}
