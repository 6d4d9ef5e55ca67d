import type { SessionEndReason } from '@callplane/core';
import { readSessionEnd, type Database } from '@callplane/db';
import type { CloseReason } from '@callplane/protocol';
import type { SessionWrites } from './session-writes.js';
import type { Session, SessionOver } from './session.js';

/** The close reason that a client gets when its session has ended. */
export const CLOSE_REASON_OF_END = {
  left: 'left',
  removed: 'removed',
  room_ended: 'room_ended',
  superseded: 'superseded',
  // The cleanup worker counted an open connection as lost, e.g. because this instance was cut off for long.
  connection_lost: 'invalid_session',
} as const satisfies Record<SessionEndReason, CloseReason>;

/** What ends a session that is over in PostgreSQL. */
export function overBecause(reason: SessionEndReason): SessionOver {
  return { reason: CLOSE_REASON_OF_END[reason], cause: `session ended: ${reason}` };
}

/**
 * Reads why a session is missing from a complete read of its room, which does not contain the reason.
 * @returns the close reason for its client; `unavailable` if PostgreSQL does not answer. Never rejects.
 */
export async function endOf(
  { database }: { database: Database },
  writes: SessionWrites,
  session: Session,
): Promise<SessionOver> {
  let over: SessionOver = { reason: 'unavailable', cause: 'The reason why the session is missing cannot be read.' };
  await writes.retry('session end reason not loaded', session.sessionId, 3, async () => {
    const ends = await readSessionEnd(database.sql, [session.sessionId]);
    const end = ends.get(session.sessionId);
    over = overBecause(end ?? 'connection_lost');
    // The row says that the session is live, but its room does not show it. Ending it resolves the contradiction.
    if (end === null) await writes.end(session.held, session.roomId, 'connection_lost');
  });
  return over;
}
