import type { RoomState, SessionEndReason, Tenant } from '@callplane/core';
import type { Db } from '../client/database.js';
import { writeEvents, type WakeableDelivery } from '../events/write-events.js';
import { sessionEvents, type EndedSession } from './session-events.js';

/**
 * Tells of sessions that this transaction has just ended: `track.unpublished` of what each was publishing, then its
 * `participant.left`. Notes if that has left the room empty. Last in its transaction, like all that write events.
 * @returns the deliveries to wake.
 */
export async function writeSessionsEnded(
  tx: Db,
  tenant: Tenant,
  room: RoomState,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<WakeableDelivery[]> {
  if (ended.length === 0) return [];
  const events = sessionEvents(tenant, room, now);
  const left = ended.flatMap((session) => events.left(session, reason));
  const { deliveries } = await writeEvents(tx, tenant, room.id, left, now);
  // Under the lock on the room that the events' numbers took: of several that leave at once, the last sees nobody.
  await tx.$executeRaw`
    UPDATE rooms SET empty_since = now()
    WHERE id = ${room.id} AND status = 'active' AND empty_since IS NULL
      AND NOT EXISTS (SELECT 1 FROM participant_sessions WHERE room_id = ${room.id} AND ended_at IS NULL)`;
  return deliveries;
}
