import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { lockParticipants } from '../participants/participant-cleanup.js';
import { endPresence, type EndedNow } from '../sessions/session-ends.js';

/** Maximum number of participants per transaction, so that a large room does not hold locks for long. */
const BATCH = 2000;

/**
 * Ends the sessions and the presence of up to {@link BATCH} participants of a room who have not left. Safe to repeat.
 * @returns the number of participants of this batch (0 when none was left), and the ended sessions.
 */
export async function endRoomPresence(
  tx: TypedSql,
  roomId: string,
  now: Date,
): Promise<{ left: number; ended: EndedNow[] }> {
  const which = Prisma.sql`room_id = ${roomId} AND left_at IS NULL ORDER BY id LIMIT ${BATCH}`;
  const present = await lockParticipants(tx, which);
  const ended = await endPresence(
    tx,
    present.map(({ id }) => id),
    'room_ended',
    now,
  );
  return { left: present.length, ended };
}
