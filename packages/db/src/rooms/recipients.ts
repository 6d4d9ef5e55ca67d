import type { RoomStatus, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** A room and the participants that a message to it reaches. */
export interface MessageRecipients {
  status: RoomStatus;
  /** Number of recipients with a live session. */
  present: number;
  /** Recipients that have no live session in the room; empty for a message to all. */
  absent: string[];
}

/**
 * Finds the recipients of a message.
 * @param to participant ids; null for everyone in the room.
 * @returns null when the environment has no such room.
 */
export async function findRecipients(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  to: readonly string[] | null,
): Promise<MessageRecipients | null> {
  const chosen = to === null ? Prisma.empty : Prisma.sql`AND s.participant_id = ANY(${[...to]}::text[])`;
  const [row] = await db.$queryRaw<{ status: RoomStatus; present: number; ids: string[] | null }[]>`
    SELECT rooms.status, live.present, live.ids
    FROM rooms CROSS JOIN LATERAL (
      SELECT count(*)::int AS present, ${to === null ? Prisma.sql`NULL::text[]` : Prisma.sql`array_agg(s.participant_id)`} AS ids
      FROM participant_sessions s WHERE s.room_id = rooms.id AND s.ended_at IS NULL ${chosen}
    ) live
    WHERE rooms.id = ${roomId} AND rooms.environment_id = ${tenant.environmentId}`;
  if (row === undefined) return null;
  const present = new Set(row.ids ?? []);
  return { status: row.status, present: row.present, absent: (to ?? []).filter((id) => !present.has(id)) };
}
