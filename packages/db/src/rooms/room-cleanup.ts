import type { SessionEndReason } from '@callplane/core';
import type { Db } from '../client/database.js';

/** Participants that one transaction ends at most, so that a large room never holds locks for long. */
const BATCH = 2000;

/**
 * Ends the sessions and the presence of up to {@link BATCH} participants of a room who have not left. Safe to repeat.
 * @returns how many have left by this; 0 when nobody is left.
 */
export async function endRoomPresence(db: Db, roomId: string, now: Date): Promise<number> {
  const rows = await db.$queryRaw<{ left: number }[]>`
    WITH present AS (
      SELECT id FROM participants WHERE room_id = ${roomId} AND left_at IS NULL
      ORDER BY id LIMIT ${BATCH} FOR NO KEY UPDATE
    ), sessions AS (
      UPDATE participant_sessions SET ended_at = ${now}, end_reason = ${'room_ended' satisfies SessionEndReason}
      WHERE ended_at IS NULL AND participant_id IN (SELECT id FROM present)
    ), leavers AS (
      -- One that never connected has left when its token expired, if that was before the end.
      UPDATE participants
      SET left_at = CASE WHEN connected_at IS NULL THEN least(token_expires_at, ${now}::timestamptz) ELSE ${now}::timestamptz END
      WHERE id IN (SELECT id FROM present)
      RETURNING 1
    )
    SELECT count(*)::int AS left FROM leavers`;
  return rows[0]?.left ?? 0;
}

/** The clean-up is complete. */
export async function markRoomEnded(db: Db, roomId: string, now: Date): Promise<void> {
  await db.room.updateMany({ where: { id: roomId, status: 'ending' }, data: { status: 'ended', endedAt: now } });
}
