import type { SessionEndReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { endPresence, type EndedNow } from '../sessions/session-ends.js';

/**
 * Ends the session and the presence of one participant. Safe to repeat: a session that has ended keeps its time and
 * reason.
 */
export async function endParticipantPresence(
  tx: TypedSql,
  participantId: string,
  reason: SessionEndReason,
  now: Date,
): Promise<EndedNow[]> {
  // Locks the participant before its session, as ending the room does: another order could deadlock with it.
  await tx.$queryRaw`SELECT 1 FROM participants WHERE id = ${participantId} FOR NO KEY UPDATE`;
  return endPresence(tx, [participantId], reason, now);
}
