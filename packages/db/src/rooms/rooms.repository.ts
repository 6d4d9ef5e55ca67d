import type { NewEvent, RoomState, RoomStatus, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { fanOut, insertEvents, numberEvents, type WakeableDelivery } from '../events/write-events.js';
import { ROOM_COLUMNS, ROOM_FIELDS } from './room.sql.js';

export type NewRoom = Pick<RoomState, 'id' | 'name' | 'metadata' | 'maxParticipants' | 'createdAt'>;

/**
 * Inserts the room, its first event and that event's deliveries, in one statement.
 * @param created the event `room.created`.
 * @returns the deliveries to wake.
 */
export function insertRoom(
  db: TypedSql,
  tenant: Tenant,
  room: NewRoom,
  created: NewEvent,
): PromiseLike<WakeableDelivery[]> {
  const createdAt = room.createdAt.toISOString();
  return db.$queryRaw<WakeableDelivery[]>`
    WITH room AS (
      INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, last_sequence)
      VALUES (${room.id}, ${tenant.environmentId}, ${room.name}, ${JSON.stringify(room.metadata)}::jsonb, 'created',
        ${room.maxParticipants}, ${createdAt}::timestamptz, 1)
    ), ${insertEvents(created, numberEvents([created], 1))}
    ${fanOut(tenant, createdAt)}`;
}

export async function findRoom(db: TypedSql, tenant: Tenant, roomId: string): Promise<RoomState | null> {
  const [row] = await db.$queryRaw<RoomState[]>`
    SELECT ${ROOM_COLUMNS} FROM rooms WHERE id = ${roomId} AND environment_id = ${tenant.environmentId}`;
  return row ?? null;
}

/** Whether the environment has this room. */
export async function roomExists(db: Db, tenant: Tenant, roomId: string): Promise<boolean> {
  const room = await db.room.findFirst({
    where: { id: roomId, environmentId: tenant.environmentId },
    select: { id: true },
  });
  return room !== null;
}

/**
 * Lists rooms newest first: ids sort by the time of creation.
 * @param beforeId the last id of the previous page. Rooms that are added meanwhile sort before it, so no page shifts.
 */
export async function listRooms(
  db: Db,
  tenant: Tenant,
  page: { status: RoomStatus | null; beforeId: string | null; limit: number },
): Promise<RoomState[]> {
  const rooms = await db.room.findMany({
    where: {
      environmentId: tenant.environmentId,
      ...(page.status === null ? {} : { status: page.status }),
      ...(page.beforeId === null ? {} : { id: { lt: page.beforeId } }),
    },
    orderBy: { id: 'desc' },
    take: page.limit,
    select: ROOM_FIELDS,
  });
  return rooms as RoomState[];
}
