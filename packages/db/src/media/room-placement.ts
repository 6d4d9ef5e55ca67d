import { OPEN_ROOM_STATUSES, type RoomStatus } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import type { RoomPlacement } from '../sessions/session.js';

/**
 * Moves an open room to another media server, or to none. A compare-and-swap: of several concurrent moves, one
 * succeeds.
 * @returns the current placement, and the room's version with it. It is the caller's own if its generation is one above
 * `expected`.
 */
export async function placeRoom(
  db: TypedSql,
  roomId: string,
  expected: RoomPlacement,
  toNodeId: string | null,
): Promise<RoomPlacement & { version: number }> {
  const [moved] = await db.$queryRaw<(RoomPlacement & { version: number })[]>`
    UPDATE rooms SET media_node_id = ${toNodeId}::text, media_generation = media_generation + 1,
      version = version + 1
    WHERE id = ${roomId} AND media_generation = ${expected.mediaGeneration}::int
      AND media_node_id IS NOT DISTINCT FROM ${expected.mediaNodeId}::text AND ${isRoomOpen}
    RETURNING media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration", version`;
  if (moved !== undefined) return moved;
  const [standing] = await db.$queryRaw<(RoomPlacement & { version: number })[]>`
    SELECT media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration", version
    FROM rooms WHERE id = ${roomId}`;
  if (standing === undefined) throw new Error(`no room ${roomId} to place`);
  return standing;
}

export interface RoomOnNode extends RoomPlacement {
  roomId: string;
  status: RoomStatus;
}

export async function roomsOnNode(db: Db, nodeId: string): Promise<RoomOnNode[]> {
  const rooms = await db.room.findMany({
    where: { mediaNodeId: nodeId, status: { not: 'ended' } },
    orderBy: { id: 'asc' },
    select: { id: true, status: true, mediaNodeId: true, mediaGeneration: true },
  });
  return rooms.map(({ id, ...room }) => ({ ...room, roomId: id, status: room.status as RoomStatus }));
}

/**
 * Takes rooms without live sessions, the lobby apart, off a media server. Their next participant places them anew.
 * @returns the number of rooms.
 */
export async function unplaceEmptyRooms(db: Db, nodeId: string): Promise<number> {
  const { count } = await db.room.updateMany({
    where: {
      mediaNodeId: nodeId,
      status: { in: [...OPEN_ROOM_STATUSES] },
      sessions: { none: { endedAt: null, waiting: false } },
    },
    data: { mediaNodeId: null, mediaGeneration: { increment: 1 }, version: { increment: 1 } },
  });
  return count;
}

/** Status, placement and latest sequence number of rooms; unknown rooms are missing. */
export async function roomsStatus(
  db: TypedSql,
  roomIds: readonly string[],
): Promise<Map<string, RoomOnNode & { sequence: number }>> {
  if (roomIds.length === 0) return new Map();
  const rows = await db.$queryRaw<(RoomOnNode & { sequence: number })[]>`
    SELECT id AS "roomId", status, media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration",
      last_sequence AS sequence
    FROM rooms WHERE id = ANY(${[...roomIds]}::text[])`;
  return new Map(rows.map((row) => [row.roomId, row]));
}
