import { ROOM_STATUSES, type NewEvent, type RoomState, type RoomStatus, type Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { fanOut, insertEvents, numberEvents, type WakeableDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { ROOM_COLUMNS } from './room.sql.js';

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
 * @param page `name`: exactly this name; null for any. `beforeId`: the last id of the previous page. Rooms that are added
 *   meanwhile sort before it, so no page shifts.
 */
export function listRooms(
  db: TypedSql,
  tenant: Tenant,
  page: { status: RoomStatus | null; name: string | null; beforeId: string | null; limit: number },
): PromiseLike<RoomState[]> {
  const { status, name, limit } = page;
  const before = page.beforeId === null ? Prisma.empty : Prisma.sql`AND rooms.id < ${page.beforeId}`;
  if (name === null) {
    return db.$queryRaw<RoomState[]>`
      SELECT ${ROOM_COLUMNS} FROM rooms
      WHERE rooms.environment_id = ${tenant.environmentId} ${before}
        ${status === null ? Prisma.empty : Prisma.sql`AND rooms.status = ${status}`}
      ORDER BY rooms.id DESC LIMIT ${limit}`;
  }
  // Each status is a range of rooms_name_idx. Only this index has the order by `id || ''`, so PostgreSQL uses it.
  // Ordered by `id`, PostgreSQL might choose an index without the name.
  return db.$queryRaw<RoomState[]>`
    SELECT found.* FROM unnest(${status === null ? [...ROOM_STATUSES] : [status]}::text[]) AS status (name)
    CROSS JOIN LATERAL (
      SELECT ${ROOM_COLUMNS} FROM rooms
      WHERE rooms.environment_id = ${tenant.environmentId} AND rooms.name = ${name} AND rooms.status = status.name
        ${page.beforeId === null ? Prisma.empty : Prisma.sql`AND (rooms.id || '') < ${page.beforeId}`}
      ORDER BY (rooms.id || '') DESC LIMIT ${limit}
    ) found
    ORDER BY found.id DESC LIMIT ${limit}`;
}
