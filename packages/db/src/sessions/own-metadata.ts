import type { Database } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { HeldSession } from './session.js';
import { bumpRooms, lockHeld } from './session.sql.js';

export interface MetadataChange {
  held: HeldSession;
  metadata: Record<string, unknown>;
}

/**
 * Replaces the metadata of participants of one room, on behalf of the connections that hold their sessions.
 * @param changes of different sessions.
 * @returns the ids of the sessions whose metadata was written. A session is missing if it has ended, if its participant
 * is being removed, or if another connection holds it.
 */
export async function updateOwnMetadata(
  database: Database,
  roomId: string,
  changes: readonly MetadataChange[],
): Promise<Set<string>> {
  const held = changes.map((change) => change.held);
  const sessionIds = held.map(({ sessionId }) => sessionId);
  const isAllowed = Prisma.sql`s.room_id = ${roomId} AND s.participant_id = ANY(ARRAY(SELECT id FROM person))`;
  const rows = await database.sql.$queryRaw<{ id: string }[]>`
    WITH person AS MATERIALIZED (
      SELECT id FROM participants
      WHERE removed_at IS NULL AND id = ANY(ARRAY(
        SELECT participant_id FROM participant_sessions WHERE id = ANY(${sessionIds}::text[])
      ))
      ORDER BY id FOR NO KEY UPDATE
    ), ${lockHeld(held, isAllowed)}, ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM held`)}, changed AS (
      UPDATE participants p SET metadata = input.metadata::jsonb
      FROM held JOIN unnest(${sessionIds}::text[], ${changes.map(({ metadata }) => JSON.stringify(metadata))}::text[])
        AS input (session_id, metadata) ON input.session_id = held.id
      WHERE p.id = held.participant_id
    )
    UPDATE participant_sessions s SET version = room.version FROM held JOIN room ON room.id = held.room_id
    WHERE s.id = held.id RETURNING s.id`;
  return new Set(rows.map(({ id }) => id));
}
