import type { SessionEndReason } from '@callplane/core';
import type { Db } from '../client/database.js';

/** Ends the session and the presence of one participant. Safe to repeat: what has ended keeps its time and reason. */
export async function endParticipantPresence(
  db: Db,
  participantId: string,
  reason: SessionEndReason,
  now: Date,
): Promise<void> {
  // Locks the participant before its session, as the end of its room does: in another order the two would deadlock.
  await db.$queryRaw`SELECT 1 FROM participants WHERE id = ${participantId} FOR NO KEY UPDATE`;
  await db.participantSession.updateMany({
    where: { participantId, endedAt: null },
    data: { endedAt: now, endReason: reason },
  });
  await db.$executeRaw`
    UPDATE participants
    SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${now}::timestamptz) ELSE ${now}::timestamptz END
    WHERE id = ${participantId} AND left_at IS NULL`;
}
