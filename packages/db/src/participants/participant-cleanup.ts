import type { ParticipantState, SessionEndReason, TrackIdentity } from '@callplane/core';
import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { EndedSession } from '../sessions/session-events.js';
import { PARTICIPANT_COLUMNS } from './participant-row.js';

/** Ends the session and the presence of one participant. Safe to repeat: what has ended keeps its time and reason. */
export async function endParticipantPresence(
  db: Db,
  participantId: string,
  reason: SessionEndReason,
  now: Date,
): Promise<EndedSession[]> {
  // Locks the participant before its session, as the end of its room does: in another order the two would deadlock.
  await db.$queryRaw`SELECT 1 FROM participants WHERE id = ${participantId} FOR NO KEY UPDATE`;
  return endPresence(db, [participantId], reason, now);
}

/** Ends the live sessions of participants whose rows the caller has locked, and has them leave, in a session or not. */
export function endPresence(
  db: Db,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
): Promise<EndedSession[]> {
  return end(db, participantIds, reason, now, {
    sessions: Prisma.sql`true`,
    leavers: Prisma.sql`participants.id = ANY(${[...participantIds]}::text[])
      AND (participants.left_at IS NULL OR participants.id IN (SELECT participant_id FROM ended))`,
  });
}

/**
 * Ends those of the live sessions of participants, whose rows the caller has locked, that are meant.
 * @param sessions a condition on participant_sessions.
 */
export function endSessionsWhere(
  db: Db,
  participantIds: readonly string[],
  sessions: Prisma.Sql,
  reason: SessionEndReason,
  now: Date,
): Promise<EndedSession[]> {
  const leavers = Prisma.sql`participants.id IN (SELECT participant_id FROM ended)`;
  return end(db, participantIds, reason, now, { sessions, leavers });
}

async function end(
  db: Db,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
  where: { sessions: Prisma.Sql; leavers: Prisma.Sql },
): Promise<EndedSession[]> {
  if (participantIds.length === 0) return [];
  const at = now.toISOString();
  const rows = await db.$queryRaw<(ParticipantState & { sessionId: string })[]>`
    WITH ended AS (
      UPDATE participant_sessions SET ended_at = ${at}::timestamptz, end_reason = ${reason}
      WHERE ended_at IS NULL AND participant_id = ANY(${[...participantIds]}::text[]) AND ${where.sessions}
      RETURNING id, participant_id
    ), leavers AS (
      -- One that never connected has left when its token expired, if that was before the end.
      UPDATE participants
      SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${at}::timestamptz) ELSE ${at}::timestamptz END
      WHERE ${where.leavers}
      RETURNING participants.*
    )
    SELECT ended.id AS "sessionId", ${PARTICIPANT_COLUMNS}
    FROM ended JOIN leavers AS participants ON participants.id = ended.participant_id
    ORDER BY ended.id`;
  const tracks = await endTracks(
    db,
    rows.map(({ sessionId }) => sessionId),
  );
  return rows.map(({ sessionId, ...participant }) => ({ sessionId, participant, tracks: tracks.get(sessionId) ?? [] }));
}

/**
 * What these sessions were publishing ends with them. A statement of its own, after the sessions were locked: only so
 * does it see the tracks that were being published at that moment.
 */
export async function endTracks(db: Db, sessionIds: readonly string[]): Promise<Map<string, TrackIdentity[]>> {
  const tracks = new Map<string, TrackIdentity[]>();
  if (sessionIds.length === 0) return tracks;
  const rows = await db.$queryRaw<(TrackIdentity & { sessionId: string })[]>`
    WITH ended AS (
      DELETE FROM session_tracks WHERE session_id = ANY(${[...sessionIds]}::text[])
      RETURNING session_id, track_id, kind, source, published_at
    )
    SELECT session_id AS "sessionId", track_id AS "trackId", kind, source FROM ended
    ORDER BY session_id, published_at, track_id`;
  for (const { sessionId, ...track } of rows) tracks.set(sessionId, [...(tracks.get(sessionId) ?? []), track]);
  return tracks;
}
