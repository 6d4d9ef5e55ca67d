import type { RoomStatus, Tenant } from '@callplane/core';
import type { Db } from '../client/database.js';

/** A room as it is stored; its project is that of its environment. */
export interface RoomRow {
  id: string;
  name: string;
  metadata: Record<string, unknown>;
  status: RoomStatus;
  maxParticipants: number;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

export type NewRoom = Pick<RoomRow, 'id' | 'name' | 'metadata' | 'maxParticipants' | 'createdAt'>;

/** One statement, typed here because it is hot: through the model API it costs about half as much again. */
export async function insertRoom(db: Db, tenant: Tenant, room: NewRoom): Promise<void> {
  await db.$executeRaw`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
    VALUES (${room.id}, ${tenant.environmentId}, ${room.name}, ${JSON.stringify(room.metadata)}::jsonb, 'created',
      ${room.maxParticipants}, ${room.createdAt})`;
}

/** Hot like {@link insertRoom}. */
export async function findRoom(db: Db, tenant: Tenant, roomId: string): Promise<RoomRow | null> {
  const [row] = await db.$queryRaw<RoomRow[]>`
    SELECT id, name, metadata, status, max_participants AS "maxParticipants", created_at AS "createdAt",
      started_at AS "startedAt", ended_at AS "endedAt"
    FROM rooms WHERE id = ${roomId} AND environment_id = ${tenant.environmentId}`;
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
): Promise<RoomRow[]> {
  const rooms = await db.room.findMany({
    where: {
      environmentId: tenant.environmentId,
      ...(page.status === null ? {} : { status: page.status }),
      ...(page.beforeId === null ? {} : { id: { lt: page.beforeId } }),
    },
    orderBy: { id: 'desc' },
    take: page.limit,
    omit: { environmentId: true },
  });
  return rooms as RoomRow[];
}
