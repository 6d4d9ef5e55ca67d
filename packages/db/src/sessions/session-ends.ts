import type { EndedSession, ParticipantState, SessionEndReason, TrackIdentity } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { PARTICIPANT_COLUMNS } from '../participants/participant.sql.js';
import { rememberTracks } from './past-tracks.sql.js';
import { bumpRooms } from './versions.sql.js';

/** A session that this transaction has ended. */
export interface EndedNow extends EndedSession {
  /** The version of its room that contains the end. */
  version: number;
}

/**
 * Ends the live sessions of participants, and marks the participants as left, also those without a session. The caller
 * has locked the participants' rows.
 */
export function endPresence(
  tx: TypedSql,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
): Promise<EndedNow[]> {
  return end(tx, participantIds, reason, now, {
    sessions: Prisma.sql`true`,
    leavers: Prisma.sql`participants.id = ANY(${[...participantIds]}::text[])
      AND (participants.left_at IS NULL OR participants.id IN (SELECT participant_id FROM ended))`,
  });
}

/**
 * Ends those live sessions of participants that match a condition. The caller has locked the participants' rows.
 * @param sessions a condition on participant_sessions.
 */
export function endSessionsWhere(
  tx: TypedSql,
  participantIds: readonly string[],
  sessions: Prisma.Sql,
  reason: SessionEndReason,
  now: Date,
): Promise<EndedNow[]> {
  const leavers = Prisma.sql`participants.id IN (SELECT participant_id FROM ended)`;
  return end(tx, participantIds, reason, now, { sessions, leavers });
}

async function end(
  tx: TypedSql,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
  where: { sessions: Prisma.Sql; leavers: Prisma.Sql },
): Promise<EndedNow[]> {
  if (participantIds.length === 0) return [];
  const at = now.toISOString();
  const rows = await tx.$queryRaw<(ParticipantState & { sessionId: string; version: number })[]>`
    WITH live AS MATERIALIZED (
      SELECT id, room_id FROM participant_sessions
      WHERE ended_at IS NULL AND participant_id = ANY(${[...participantIds]}::text[]) AND ${where.sessions}
      ORDER BY id FOR NO KEY UPDATE
    ), ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM live`)}, ended AS (
      UPDATE participant_sessions s SET ended_at = ${at}::timestamptz, end_reason = ${reason}, version = room.version
      FROM room WHERE s.id = ANY(ARRAY(SELECT id FROM live)) AND s.room_id = room.id
      RETURNING s.id, s.participant_id, s.version
    ), leavers AS (
      -- A participant that never connected left when its token expired, if that was earlier.
      UPDATE participants
      SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${at}::timestamptz) ELSE ${at}::timestamptz END
      WHERE ${where.leavers}
      RETURNING participants.*
    )
    SELECT ended.id AS "sessionId", ended.version, ${PARTICIPANT_COLUMNS}
    FROM ended JOIN leavers AS participants ON participants.id = ended.participant_id
    ORDER BY ended.id`;
  const tracks = await endTracks(
    tx,
    rows.map(({ sessionId }) => sessionId),
    now,
  );
  return rows.map(({ sessionId, version, ...participant }) => {
    return { sessionId, version, participant, tracks: tracks.get(sessionId) ?? [] };
  });
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
 * Deletes tracks, and keeps them in the history of their sessions, which the caller has locked.
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
    ), ${rememberTracks(now)}
    SELECT session_id AS "sessionId", track_id AS "trackId", kind, source FROM ended
    ORDER BY session_id, published_at, track_id`;
}
