import { OPEN_ROOM_STATUSES, type RoomStatus } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import { records } from '../recordings/recordings.repository.js';
import type { RoomNodes, RoomPlacement } from '../sessions/session.js';

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
      further_node_ids = array_remove(further_node_ids, ${toNodeId}::text), version = version + 1
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

export interface RoomOnNode extends RoomNodes {
  roomId: string;
  status: RoomStatus;
}

export async function roomsOnNode(db: Db, nodeId: string): Promise<RoomOnNode[]> {
  const rooms = await db.room.findMany({
    where: { mediaNodeId: nodeId, status: { not: 'ended' } },
    orderBy: { id: 'asc' },
    select: { id: true, status: true, mediaNodeId: true, mediaGeneration: true, furtherNodeIds: true },
  });
  return rooms.map(({ id, ...room }) => ({ ...room, roomId: id, status: room.status as RoomStatus }));
}

/**
 * Adds a media server to the ones of an open room; to one that is being recorded, only a server that records.
 * @param max of servers that the room may have
 * @returns the version of the room then; null if nothing was written: the room has the server, or as many as it may have
 */
export async function addRoomNode(db: TypedSql, roomId: string, nodeId: string, max: number): Promise<number | null> {
  const [row] = await db.$queryRaw<{ version: number }[]>`
    UPDATE rooms SET further_node_ids = array_append(further_node_ids, ${nodeId}::text), version = version + 1
    WHERE id = ${roomId} AND ${isRoomOpen} AND media_node_id <> ${nodeId}::text
      AND NOT (${nodeId}::text = ANY(further_node_ids)) AND cardinality(further_node_ids) + 1 < ${max}::int
      AND NOT EXISTS (SELECT FROM media_nodes WHERE id = ${nodeId} AND draining)
      AND (recording_since IS NULL OR EXISTS (SELECT FROM media_nodes n WHERE n.id = ${nodeId} AND ${records}))
    RETURNING version`;
  return row?.version ?? null;
}

/**
 * Takes a media server off the open rooms that have it besides their own one: their sessions there move within the room.
 * @param roomId null: all rooms
 * @returns the rooms with their versions then
 */
export function removeRoomNode(
  db: TypedSql,
  nodeId: string,
  roomId: string | null,
): PromiseLike<{ roomId: string; version: number }[]> {
  return db.$queryRaw<{ roomId: string; version: number }[]>`
    UPDATE rooms SET further_node_ids = array_remove(further_node_ids, ${nodeId}::text), version = version + 1
    WHERE id = coalesce(${roomId}::text, id) AND ${isRoomOpen} AND media_node_id IS NOT NULL AND ${nodeId}::text = ANY(further_node_ids)
    RETURNING id AS "roomId", version`;
}

/** The media servers that may carry media of a room: its own, the further ones, and the ends of its forwards. */
export async function mediaNodesOfRoom(db: TypedSql, roomId: string): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT media_node_id AS id FROM rooms WHERE id = ${roomId} AND media_node_id IS NOT NULL
    UNION SELECT unnest(further_node_ids) FROM rooms WHERE id = ${roomId}
    UNION SELECT from_node_id FROM media_forwards WHERE room_id = ${roomId}
    UNION SELECT to_node_id FROM media_forwards WHERE room_id = ${roomId}
    ORDER BY 1`;
  return rows.map(({ id }) => id);
}

/**
 * Takes rooms without live sessions, the lobby apart, off a media server. Their next participant places them anew.
 * @returns the number of rooms.
 */
export async function unplaceEmptyRooms(db: Db, nodeId: string): Promise<number> {
  const { count } = await db.room.updateMany({
    where: {
      OR: [{ mediaNodeId: nodeId }, { furtherNodeIds: { has: nodeId } }],
      status: { in: [...OPEN_ROOM_STATUSES] },
      sessions: { none: { endedAt: null, waiting: false } },
    },
    data: { mediaNodeId: null, furtherNodeIds: [], mediaGeneration: { increment: 1 }, version: { increment: 1 } },
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
      further_node_ids AS "furtherNodeIds", last_sequence AS sequence
    FROM rooms WHERE id = ANY(${[...roomIds]}::text[])`;
  return new Map(rows.map((row) => [row.roomId, row]));
}
