import type { Db } from '../client/database.js';
import { endPresence } from '../participants/participant-cleanup.js';
import type { EndedSession } from '../sessions/session-events.js';

/** Participants that one transaction ends at most, so that a large room never holds locks for long. */
const BATCH = 2000;

/**
 * Ends the sessions and the presence of up to {@link BATCH} participants of a room who have not left. Safe to repeat.
 * @returns how many have left by this (0 when nobody is left), and the sessions that ended.
 */
export async function endRoomPresence(
  db: Db,
  roomId: string,
  now: Date,
): Promise<{ left: number; ended: EndedSession[] }> {
  const present = await db.$queryRaw<{ id: string }[]>`
    SELECT id FROM participants WHERE room_id = ${roomId} AND left_at IS NULL
    ORDER BY id LIMIT ${BATCH} FOR NO KEY UPDATE`;
  const ended = await endPresence(
    db,
    present.map(({ id }) => id),
    'room_ended',
    now,
  );
  return { left: present.length, ended };
}

/** The clean-up is complete. */
export async function markRoomEnded(db: Db, roomId: string, now: Date): Promise<void> {
  await db.room.updateMany({ where: { id: roomId, status: 'ending' }, data: { status: 'ended', endedAt: now } });
}
