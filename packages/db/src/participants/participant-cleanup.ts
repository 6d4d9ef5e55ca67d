import type { ParticipantState, SessionEndReason } from '@callplane/core';
import type { Db } from '../client/database.js';

/** A session that was just ended, and its participant as it is from then on. */
export interface EndedSession {
  sessionId: string;
  participant: ParticipantState;
}

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

/** Ends the live sessions of participants whose rows the caller has locked, and has them leave. */
export async function endPresence(
  db: Db,
  participantIds: readonly string[],
  reason: SessionEndReason,
  now: Date,
): Promise<EndedSession[]> {
  if (participantIds.length === 0) return [];
  const at = now.toISOString();
  const rows = await db.$queryRaw<(ParticipantState & { sessionId: string })[]>`
    WITH ended AS (
      UPDATE participant_sessions SET ended_at = ${at}::timestamptz, end_reason = ${reason}
      WHERE ended_at IS NULL AND participant_id = ANY(${[...participantIds]}::text[])
      RETURNING id, participant_id
    ), leavers AS (
      -- One that never connected has left when its token expired, if that was before the end.
      UPDATE participants
      SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${at}::timestamptz) ELSE ${at}::timestamptz END
      WHERE id = ANY(${[...participantIds]}::text[]) AND left_at IS NULL
      RETURNING id, room_id, external_id, name, metadata, role, created_at, token_expires_at, connected_at, left_at
    )
    SELECT ended.id AS "sessionId", leavers.id, room_id AS "roomId", external_id AS "externalId", name, metadata, role,
      created_at AS "createdAt", token_expires_at AS "tokenExpiresAt", connected_at AS "connectedAt", left_at AS "leftAt"
    FROM ended JOIN leavers ON leavers.id = ended.participant_id
    ORDER BY ended.id`;
  return rows.map(({ sessionId, ...participant }) => ({ sessionId, participant }));
}
