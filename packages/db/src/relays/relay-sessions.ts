// Which of the sessions that hold relays or feeds must lose them.

import type { TypedSql } from '../client/database.js';

/** Returns those of the sessions that have ended. */
export async function endedAmong(db: TypedSql, sessionIds: readonly string[]): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT id FROM participant_sessions WHERE id = ANY(${[...sessionIds]}::text[]) AND ended_at IS NOT NULL`;
  return rows.map(({ id }) => id);
}

/** Returns those of the sessions that belong to a room, or to one participant of it. */
export async function belongingAmong(
  db: TypedSql,
  { roomId, participantId }: { roomId: string; participantId: string | null },
  sessionIds: readonly string[],
): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT id FROM participant_sessions
    WHERE id = ANY(${[...sessionIds]}::text[]) AND room_id = ${roomId}
      AND (${participantId}::text IS NULL OR participant_id = ${participantId})`;
  return rows.map(({ id }) => id);
}
