// For the agents beside media servers, whose role has few rights.

import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import { isWanted } from './recording.sql.js';

export interface WantedCapture {
  roomId: string;
  /** The recordings that want it, as one text. */
  recordings: string;
}

export interface StoredCapture {
  roomId: string;
  nodeId: string;
  /** Name of the file without its suffix. */
  name: string;
  kind: 'audio' | 'video';
  feedId: string;
  /** Place of the media section among all sections of the publisher. */
  section: number;
  /** By PostgreSQL's clock. */
  startedAt: Date;
  bytes: number;
  chunks: number;
  closed: boolean;
  /** Latest write to the store, by PostgreSQL's clock. */
  shippedAt: Date;
}

export const CAPTURE_COLUMNS = Prisma.sql`room_id AS "roomId", node_id AS "nodeId", name, kind, feed_id AS "feedId",
  section, started_at AS "startedAt", shipped_at AS "shippedAt", bytes::float8 AS bytes, chunks, closed`;

/** The rooms that a media server records at this moment. `now` is PostgreSQL's clock. */
export async function wantedCaptures(db: TypedSql, nodeId: string): Promise<{ now: Date; wanted: WantedCapture[] }> {
  const [row] = await db.$queryRaw<[{ now: Date; wanted: WantedCapture[] }]>`
    SELECT now() AS now, coalesce((
      SELECT json_agg(json_build_object('roomId', wanted.room_id, 'recordings', wanted.ids)) FROM (
        SELECT recordings.room_id, string_agg(recordings.id, ' ' ORDER BY recordings.id) AS ids
        FROM recordings JOIN rooms ON rooms.id = recordings.room_id
        WHERE ${isWanted} AND ${isRoomOpen} 
          AND (rooms.media_node_id = ${nodeId} OR ${nodeId}::text = ANY(rooms.further_node_ids))
        GROUP BY recordings.room_id
      ) wanted
    ), '[]') AS wanted`;
  return row;
}

/** The captures of a media server of which the store has a part. */
export function storedCaptures(db: TypedSql, nodeId: string, roomId: string): PromiseLike<StoredCapture[]> {
  return db.$queryRaw<StoredCapture[]>`
    SELECT ${CAPTURE_COLUMNS} FROM recording_captures WHERE node_id = ${nodeId} AND room_id = ${roomId}`;
}

/** Says that the store has a capture up to its new size. */
export async function saveCapture(db: TypedSql, capture: Omit<StoredCapture, 'shippedAt'>): Promise<void> {
  const { roomId, nodeId, name, kind, feedId, section, startedAt, bytes, chunks, closed } = capture;
  await db.$executeRaw`
    INSERT INTO recording_captures (room_id, node_id, name, kind, feed_id, section, started_at, shipped_at, bytes,
      chunks, closed)
    VALUES (${roomId}, ${nodeId}, ${name}, ${kind}, ${feedId}, ${section}::int, ${startedAt.toISOString()}::timestamptz,
      now(), ${bytes}::bigint, ${chunks}::int, ${closed})
    ON CONFLICT (room_id, node_id, name) DO UPDATE
      SET shipped_at = excluded.shipped_at, bytes = excluded.bytes, chunks = excluded.chunks, closed = excluded.closed`;
}

/** Says that the store has everything that was recorded up to this time, but of the rooms in `fails`. */
export async function saveCapturePass(db: TypedSql, nodeId: string, begunAt: Date, fails: readonly string[] = []) {
  const at = begunAt.toISOString();
  await db.$executeRaw`
    INSERT INTO media_nodes (id, captured_at, capture_fails) VALUES (${nodeId}, ${at}::timestamptz, ${fails}::text[])
    ON CONFLICT (id) DO UPDATE SET captured_at = excluded.captured_at, capture_fails = excluded.capture_fails`;
}
