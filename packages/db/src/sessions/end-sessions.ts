import type { Database } from '../client/database.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { Prisma } from '../generated/client.js';
import { endSessionsWhere } from './session-ends.js';
import { writeSessionsEnded } from './ended-sessions.js';
import { SUBJECT_COLUMNS, SUBJECT_TABLES, toSubject, type SubjectRow } from './session.sql.js';
import type { HeldSession } from './session.js';

/**
 * Ends sessions of one room on behalf of the connections that hold them: unpublishes their tracks and marks the
 * participants as left. Skips sessions that have ended or that another connection holds.
 * @returns the ids of the sessions that this call has ended, and the deliveries to wake.
 */
export async function endSessions(
  database: Database,
  roomId: string,
  held: readonly HeldSession[],
  reason: 'left' | 'connection_lost',
  now: Date,
): Promise<{ ended: Set<string>; deliveries: DueEndpoint[] }> {
  if (held.length === 0) return { ended: new Set(), deliveries: [] };
  const pairs = Prisma.sql`SELECT * FROM unnest(${held.map(({ sessionId }) => sessionId)}::text[],
    ${held.map(({ connection }) => connection)}::int[])`;
  return database.transaction(async (sql) => {
    const rows = await sql.$queryRaw<SubjectRow[]>`
      SELECT ${SUBJECT_COLUMNS} FROM ${SUBJECT_TABLES}
      WHERE s.room_id = ${roomId} AND s.ended_at IS NULL AND (s.id, s.connection) IN (${pairs})
      ORDER BY participants.id FOR NO KEY UPDATE OF participants`;
    const subjects = rows.map(toSubject);
    const [first] = subjects;
    if (first === undefined) return { ended: new Set<string>(), deliveries: [] };
    // Checked again now that the participants are locked: a concurrent transaction may have ended or resumed a session.
    const which = Prisma.sql`(id, connection) IN (${pairs})`;
    const participantIds = subjects.map(({ participant }) => participant.id);
    const ended = await endSessionsWhere(sql, participantIds, which, reason, now);
    return {
      ended: new Set(ended.map(({ sessionId }) => sessionId)),
      deliveries: await writeSessionsEnded(sql, first.tenant, first.room, ended, reason, now),
    };
  });
}
