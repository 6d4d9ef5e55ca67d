import type { RoomState, RoomStatus, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { fanOut, type WakeableDelivery } from '../events/write-events.js';
import { ROOM_COLUMNS } from './room-row.js';

export type NewRoom = Pick<RoomState, 'id' | 'name' | 'metadata' | 'maxParticipants' | 'createdAt'>;

/** The event that tells of a new room: the first of its sequence. */
export interface RoomCreatedEvent {
  id: string;
  type: 'room.created';
  body: string;
}

/**
 * The room, its first event and that event's deliveries, in one statement: typed here because it is hot.
 * @returns the deliveries to wake.
 */
export function insertRoom(
  db: TypedSql,
  tenant: Tenant,
  room: NewRoom,
  event: RoomCreatedEvent,
): PromiseLike<WakeableDelivery[]> {
  const createdAt = room.createdAt.toISOString();
  return db.$queryRaw<WakeableDelivery[]>`
    WITH room AS (
      INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, last_sequence)
      VALUES (${room.id}, ${tenant.environmentId}, ${room.name}, ${JSON.stringify(room.metadata)}::jsonb, 'created',
        ${room.maxParticipants}, ${createdAt}::timestamptz, 1)
    ), event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at, traceparent)
      VALUES (${event.id}, ${tenant.environmentId}, ${event.type}, ${room.id}, 1, ${event.body},
        ${createdAt}::timestamptz, ${tenant.traceparent ?? null}::text)
      RETURNING id, type
    )
    ${fanOut(tenant, createdAt)}`;
}

/** Hot like {@link insertRoom}. */
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
 * Newest first: ids sort by the time of creation.
 * @param beforeId the last id of the page before; rows added meanwhile come before it and move nothing.
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
    omit: { environmentId: true, lastSequence: true, mediaNodeId: true, mediaGeneration: true, emptySince: true },
  });
  return rooms as RoomState[];
}
