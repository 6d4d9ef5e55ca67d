import type { SessionEndReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { endPresence, type EndedNow } from '../sessions/session-ends.js';

/**
 * Locks participants, as every writer does before it locks their sessions.
 * @param which a condition on participants; with several, in the order of their ids.
 */
export function lockParticipants(
  tx: TypedSql,
  which: Prisma.Sql,
): PromiseLike<{ id: string; environmentId: string }[]> {
  return tx.$queryRaw<{ id: string; environmentId: string }[]>`
    SELECT id, environment_id AS "environmentId" FROM participants WHERE ${which} FOR NO KEY UPDATE`;
}

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
  await lockParticipants(tx, Prisma.sql`id = ${participantId}`);
  return endPresence(tx, [participantId], reason, now);
}
