import {
  participantLeft,
  type EndedSession,
  type RoomState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';

/**
 * Writes the events of sessions that this transaction has just ended: `track.unpublished` for each track, then
 * `participant.left`. Sets `empty_since` when the room is empty now. Like `writeEvents`, it needs all
 * other locks of the transaction before it.
 * @returns the deliveries to wake.
 */
export async function writeSessionsEnded(
  tx: TypedSql,
  tenant: Tenant,
  room: RoomState,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<DueEndpoint[]> {
  if (ended.length === 0) return [];
  const left = ended.flatMap((session) => participantLeft({ tenant, room, now }, session, reason));
  const { deliveries } = await writeEvents(tx, left);
  // Runs under the room's lock, which the sequence numbers took: of several participants that leave at once, the last
  // one finds the room empty.
  await tx.$executeRaw`
    UPDATE rooms SET empty_since = now()
    WHERE id = ${room.id} AND status = 'active' AND empty_since IS NULL
      AND NOT EXISTS (SELECT 1 FROM participant_sessions WHERE room_id = ${room.id} AND ended_at IS NULL)`;
  return deliveries;
}
