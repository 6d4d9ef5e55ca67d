import type { RoomStatus } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import type { RoomPlacement } from '../sessions/session.js';

/**
 * Moves an open room to another media server, or to none: compares and swaps, so that of several who move it at once
 * one does.
 * @returns the placement that stands now: the caller's own if its generation is `expected`'s and one more.
 */
export async function placeRoom(
  database: Database,
  roomId: string,
  expected: RoomPlacement,
  toNodeId: string | null,
): Promise<RoomPlacement> {
  const [moved] = await database.hot.$queryRaw<RoomPlacement[]>`
    UPDATE rooms SET media_node_id = ${toNodeId}::text, media_generation = media_generation + 1
    WHERE id = ${roomId} AND media_generation = ${expected.mediaGeneration}::int
      AND media_node_id IS NOT DISTINCT FROM ${expected.mediaNodeId}::text AND status IN ('created', 'active')
    RETURNING media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration"`;
  if (moved !== undefined) return moved;
  const [standing] = await database.hot.$queryRaw<RoomPlacement[]>`
    SELECT media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration" FROM rooms WHERE id = ${roomId}`;
  if (standing === undefined) throw new Error(`no room ${roomId}`);
  return standing;
}

export interface RoomOnNode extends RoomPlacement {
  roomId: string;
  status: RoomStatus;
}

/** The rooms that a media server carries, those that have ended left out. */
export function roomsOnNode(db: TypedSql, nodeId: string): PromiseLike<RoomOnNode[]> {
  return db.$queryRaw<RoomOnNode[]>`
    SELECT id AS "roomId", status, media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration" FROM rooms
    WHERE media_node_id = ${nodeId} AND status <> 'ended' ORDER BY id`;
}

/** What the database says of rooms; those that it does not know are missing. */
export async function roomsStatus(db: TypedSql, roomIds: readonly string[]): Promise<Map<string, RoomOnNode>> {
  if (roomIds.length === 0) return new Map();
  const rows = await db.$queryRaw<RoomOnNode[]>`
    SELECT id AS "roomId", status, media_node_id AS "mediaNodeId", media_generation AS "mediaGeneration" FROM rooms
    WHERE id = ANY(${[...roomIds]}::text[])`;
  return new Map(rows.map((row) => [row.roomId, row]));
}
