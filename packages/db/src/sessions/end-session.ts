import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { endSessionsWhere } from '../participants/participant-cleanup.js';
import { writeSessionsEnded } from './ended-sessions.js';
import { isHeld, SUBJECT_COLUMNS, SUBJECT_TABLES, toSubject, type SubjectRow } from './held-session.js';
import type { EndOutcome, HeldSession } from './session.js';

/** Its connection was lost: from now on the grace period runs. False when another connection has it, or it has ended. */
export async function markDisconnected(database: Database, held: HeldSession): Promise<boolean> {
  const rows = await database.hot.$queryRaw<unknown[]>`
    UPDATE participant_sessions s SET disconnected_at = coalesce(disconnected_at, now()) WHERE ${isHeld(held)}
    RETURNING 1`;
  return rows.length > 0;
}

/**
 * Says that the connection and its media handles are gone, of a session that is being removed or whose room ends: its
 * clean-up, which waits for this, goes on at once.
 */
export async function releaseSession(db: TypedSql, held: HeldSession): Promise<boolean> {
  const rows = await db.$queryRaw<unknown[]>`
    UPDATE participant_sessions s SET instance_id = NULL, disconnected_at = coalesce(disconnected_at, now())
    WHERE ${isHeld(held)} RETURNING 1`;
  return rows.length > 0;
}

/** The connection that has it ends the session: what it publishes is unpublished, and the participant has left. */
export async function endSession(
  database: Database,
  held: HeldSession,
  reason: 'left' | 'connection_lost',
  now: Date,
): Promise<EndOutcome> {
  return database.transaction(async (tx) => {
    const [row] = await tx.$queryRaw<SubjectRow[]>`
      SELECT ${SUBJECT_COLUMNS} FROM ${SUBJECT_TABLES} WHERE ${isHeld(held)} FOR NO KEY UPDATE OF participants`;
    if (row === undefined) return { ended: false, deliveries: [] };
    const { tenant, room, participant } = toSubject(row);
    // Asked again now that the participant is locked: somebody may have been faster.
    const which = Prisma.sql`id = ${held.sessionId} AND connection = ${held.connection}::int`;
    const ended = await endSessionsWhere(tx, [participant.id], which, reason, now);
    return {
      ended: ended.length > 0,
      deliveries: await writeSessionsEnded(tx, tenant, room, ended, reason, now),
    };
  });
}
