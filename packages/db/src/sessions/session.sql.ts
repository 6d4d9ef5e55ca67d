import {
  PAST_TRACKS_MAX,
  type PaceTimes,
  type ParticipantState,
  type RoomState,
  type TrackIdentity,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { isRoomOpen, reviveRoom, ROOM_COLUMNS } from '../rooms/room.sql.js';
import type { HeldSession } from './session.js';

/**
 * The condition that a connection still holds a live session; every write to a session requires it. The sessions table
 * must have the alias `s`.
 */
export const isHeld = ({ sessionId, connection }: HeldSession): Prisma.Sql =>
  Prisma.sql`s.id = ${sessionId} AND s.connection = ${connection}::int AND s.ended_at IS NULL`;

/** Null while the session can continue. The tables are `s`, `participants` and `rooms`. */
export const END_REASON = Prisma.sql`CASE WHEN s.end_reason IS NOT NULL THEN s.end_reason
  WHEN participants.removed_at IS NOT NULL THEN 'removed' WHEN NOT ${isRoomOpen} THEN 'room_ended' END`;

export const SUBJECT_COLUMNS = Prisma.sql`s.id AS "sessionId", ${PARTICIPANT_COLUMNS},
  environments.id AS "environmentId", environments.project_id AS "projectId",
  (SELECT to_json(x) FROM (SELECT ${ROOM_COLUMNS}) x) AS room`;

export const SUBJECT_TABLES = Prisma.sql`participant_sessions s
  JOIN participants ON participants.id = s.participant_id
  JOIN rooms ON rooms.id = s.room_id
  JOIN environments ON environments.id = s.environment_id`;

export type SubjectRow = ParticipantState & {
  sessionId: string;
  environmentId: string;
  projectId: string;
  room: RoomState;
};

export function toSubject({ sessionId, environmentId, projectId, room, ...participant }: SubjectRow) {
  return { tenant: { projectId, environmentId }, room: reviveRoom(room), sessionId, participant };
}

/**
 * Every write that other participants can see increments the version of the room, under the lock of the room's row, and
 * sets it on the sessions that it changes: these rows are the room's change log.
 *
 * Every writer locks participants, then sessions, then rooms, and by id within a table. The statement reads a CTE with
 * locks completely before it locks the next table, because it needs the result as an array. A condition with EXISTS or
 * IN would stop at the first row: measured, 24 of 160 concurrent batches of 15 sessions deadlocked.
 */

/**
 * The CTE `held (…columns of participant_sessions)`: locks the live sessions that these connections still hold, by id.
 * @param where a further condition on the session `s` or the input `input (id, connection)`.
 */
export const lockHeld = (held: readonly HeldSession[], where: Prisma.Sql = Prisma.sql`true`): Prisma.Sql => Prisma.sql`
  held AS MATERIALIZED (
    SELECT s.* FROM participant_sessions s
    JOIN unnest(${held.map(({ sessionId }) => sessionId)}::text[], ${held.map(({ connection }) => connection)}::int[])
      AS input (id, connection) ON input.id = s.id AND input.connection = s.connection
    WHERE s.ended_at IS NULL AND ${where}
    ORDER BY s.id FOR NO KEY UPDATE OF s
  )`;

/**
 * The CTEs `locked` and `room (id, version)`: locks rooms by id and increments their version.
 * @param roomIds a sub-select of room ids.
 */
export const bumpRooms = (roomIds: Prisma.Sql): Prisma.Sql => Prisma.sql`
  locked AS MATERIALIZED (
    SELECT id FROM rooms WHERE id = ANY(ARRAY(${roomIds})) ORDER BY id FOR NO KEY UPDATE
  ), room AS (
    UPDATE rooms SET version = version + 1 WHERE id = ANY(ARRAY(SELECT id FROM locked)) RETURNING id, version
  )`;

/**
 * Deletes tracks, and keeps the latest ones in the history of their sessions, which the caller has locked.
 * @param which a condition on session_tracks.
 * @returns them in the order of their publication, session by session.
 */
export function deleteTracks(
  tx: TypedSql,
  which: Prisma.Sql,
  now: Date,
): PromiseLike<(TrackIdentity & { sessionId: string })[]> {
  return tx.$queryRaw<(TrackIdentity & { sessionId: string })[]>`
    WITH ended AS (
      DELETE FROM session_tracks WHERE ${which} RETURNING session_id, track_id, kind, source, published_at
    ), remembered AS (
      UPDATE participant_sessions s SET past_tracks = (
        SELECT coalesce(jsonb_agg(one.track ORDER BY one.at), '[]') FROM (
          SELECT entry.track, entry.at
          FROM jsonb_array_elements(s.past_tracks || past.tracks) WITH ORDINALITY AS entry (track, at)
          ORDER BY entry.at DESC LIMIT ${PAST_TRACKS_MAX}::int
        ) one
      )
      FROM (
        SELECT session_id, jsonb_agg(jsonb_build_object('trackId', track_id, 'kind', kind, 'source', source,
          'publishedAt', (extract(epoch FROM published_at) * 1000)::bigint, 'unpublishedAt', ${now.getTime()}::bigint)
          ORDER BY published_at, track_id) AS tracks
        FROM ended GROUP BY session_id
      ) past
      WHERE s.id = past.session_id
    )
    SELECT session_id AS "sessionId", track_id AS "trackId", kind, source FROM ended
    ORDER BY session_id, published_at, track_id`;
}

/**
 * Deletes the tracks of sessions that end, and returns them by session id. A separate statement, after the sessions
 * were locked: only then does its snapshot contain every track that was published until that moment.
 */
export async function endTracks(
  tx: TypedSql,
  sessionIds: readonly string[],
  now: Date,
): Promise<Map<string, TrackIdentity[]>> {
  const tracks = new Map<string, TrackIdentity[]>();
  if (sessionIds.length === 0) return tracks;
  const rows = await deleteTracks(tx, Prisma.sql`session_id = ANY(${[...sessionIds]}::text[])`, now);
  for (const { sessionId, ...track } of rows) tracks.set(sessionId, [...(tracks.get(sessionId) ?? []), track]);
  return tracks;
}

/**
 * A token bucket stored in a row: a column holds the time when the bucket is full again, by PostgreSQL's clock; null
 * means full. One conditional update checks the bucket and takes a token, so all instances share the bucket without
 * Redis.
 */
export function paced(column: Prisma.Sql, { intervalMs, aheadMs }: PaceTimes) {
  const milliseconds = (count: number): Prisma.Sql => Prisma.sql`${count}::float8 * interval '1 millisecond'`;
  return {
    isFree: Prisma.sql`(${intervalMs}::float8 = 0 OR ${column} IS NULL OR ${column} <= now() + ${milliseconds(aheadMs)})`,
    taken: Prisma.sql`CASE WHEN ${intervalMs}::float8 = 0 THEN ${column}
      ELSE greatest(coalesce(${column}, now()), now()) + ${milliseconds(intervalMs)} END`,
    waitMs: Prisma.sql`greatest(extract(epoch FROM ${column} - now() - ${milliseconds(aheadMs)}) * 1000, 0)::float8`,
  };
}
