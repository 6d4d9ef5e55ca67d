import type { RoomState, SessionEndReason, Tenant } from '@callplane/core';
import { ints, texts } from '../client/sql.js';
import type { TypedSql } from '../client/database.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import {
  FULL_TUPLE,
  SESSION_TUPLE,
  toSession,
  TRACK_LIST,
  type FullTuple,
  type SessionTuple,
} from './session-tuple.js';
import { END_REASON } from './session.sql.js';
import type { RoomPlacement, SessionState } from './session.js';

export interface RoomRead {
  roomId: string;
  /** The version that the reader knows; null reads the whole room. */
  after: number | null;
}

export interface RoomChanges extends RoomPlacement {
  tenant: Tenant;
  room: RoomState;
  sequence: number;
  version: number;
  /** Whether clients get the roster in pages. Viewers of such a room are short tuples. */
  rosterPaged: boolean;
  /** The version that the changes begin after; null: the sessions are all live sessions of the room. */
  after: number | null;
  /** Sessions that are over are included only if `after` is not null. */
  sessions: SessionTuple[];
}

type RoomChangesRow = Omit<RoomChanges, 'tenant' | 'room' | 'sessions'> &
  RoomState & { projectId: string; environmentId: string; sessions: SessionTuple[] | null };

/**
 * Reads what has changed in rooms, in one statement; rooms that do not exist are missing. Versions commit in order,
 * because the row of the room stays locked until the commit. So a reader of version v sees every change up to v.
 *
 * A participant that is being removed counts as gone, although its session continues until its clean-up ends it.
 */
export async function readRoomChanges(db: TypedSql, reads: readonly RoomRead[]): Promise<Map<string, RoomChanges>> {
  if (reads.length === 0) return new Map();
  const rows = await db.$queryRaw<RoomChangesRow[]>`
    SELECT ${ROOM_COLUMNS}, rooms.environment_id AS "environmentId", environments.project_id AS "projectId",
      rooms.last_sequence AS "sequence", rooms.media_node_id AS "mediaNodeId",
      rooms.media_generation AS "mediaGeneration", rooms.version, rooms.roster_paged AS "rosterPaged",
      -- A reader that is ahead knows a version that a restored database has lost.
      CASE WHEN input.after <= rooms.version THEN input.after END AS after,
      CASE WHEN input.after <= rooms.version THEN (
        SELECT json_agg(${SESSION_TUPLE} ORDER BY s.id)
        FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
        LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
        -- The second condition is the one of the index.
        WHERE s.room_id = rooms.id AND s.version > input.after AND s.version > 0
      ) ELSE (
        SELECT json_agg(${SESSION_TUPLE} ORDER BY s.id)
        FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
        -- One look-up for each session: joining an aggregate over all tracks took 4.3 s instead of 57 ms (measured).
        LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
        WHERE s.room_id = rooms.id AND s.ended_at IS NULL AND participants.removed_at IS NULL
      ) END AS sessions
    FROM unnest(${texts(reads.map(({ roomId }) => roomId))}, ${ints(reads.map(({ after }) => after))})
      AS input (room_id, after)
    -- With OFFSET, PostgreSQL looks up each room. Without, it might read all rooms for a hash join, because it plans the
    -- statement once, for ten rooms.
    CROSS JOIN LATERAL (SELECT * FROM rooms r WHERE r.id = input.room_id OFFSET 0) rooms
    JOIN environments ON environments.id = rooms.environment_id`;
  return new Map(rows.map((row) => [row.id, toChanges(row)]));
}

function toChanges(row: RoomChangesRow): RoomChanges {
  const { projectId, environmentId, sequence, mediaNodeId, mediaGeneration, version, rosterPaged, ...rest } = row;
  const { after, sessions, ...room } = rest;
  const info = { tenant: { projectId, environmentId }, room, sequence, mediaNodeId, mediaGeneration };
  return { ...info, version, rosterPaged, after, sessions: sessions ?? [] };
}

/** The states of sessions with their tracks, by session id. Sessions that are over are included. */
export async function readSessions(db: TypedSql, sessionIds: readonly string[]): Promise<Map<string, SessionState>> {
  if (sessionIds.length === 0) return new Map();
  const rows = await db.$queryRaw<{ roomId: string; tuple: FullTuple }[]>`
    SELECT s.room_id AS "roomId", ${FULL_TUPLE} AS tuple
    FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
    JOIN rooms ON rooms.id = s.room_id
    LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
    WHERE s.id = ANY(${[...sessionIds]}::text[])`;
  return new Map(rows.map(({ roomId, tuple }) => [tuple[0], toSession(roomId, tuple)]));
}

/**
 * Why a session is missing from its room: null for a live session, undefined for an unknown one. A live session in a room
 * that ends, or of a participant that is being removed, reports that as its reason.
 */
export async function readSessionEnd(db: TypedSql, sessionId: string): Promise<SessionEndReason | null | undefined> {
  const [row] = await db.$queryRaw<{ reason: SessionEndReason | null }[]>`
    SELECT ${END_REASON} AS reason FROM participant_sessions s
    JOIN participants ON participants.id = s.participant_id
    JOIN rooms ON rooms.id = s.room_id
    WHERE s.id = ${sessionId}`;
  return row?.reason;
}
