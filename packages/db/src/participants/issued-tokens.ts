import type { Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** A token that was issued for a room. The token itself is not stored. */
export interface IssuedTokenRow {
  id: string;
  participantId: string;
  participantName: string;
  permissions: string[];
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
  connectedAt: Date | null;
  isRoomOver: boolean;
}

/** Lists the tokens of a room, newest first. Each participant has one. */
export function listTokens(
  db: TypedSql,
  { environmentId }: Tenant,
  roomId: string,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): PromiseLike<IssuedTokenRow[]> {
  return db.$queryRaw<IssuedTokenRow[]>`
    SELECT t.id, p.id AS "participantId", p.name AS "participantName", t.permissions, t.created_at AS "createdAt",
      t.expires_at AS "expiresAt", COALESCE(t.revoked_at, p.removed_at) AS "revokedAt", p.connected_at AS "connectedAt",
      -- A subquery and no join: it runs once for the list.
      (SELECT status IN ('ending', 'ended') FROM rooms WHERE id = ${roomId}) AS "isRoomOver"
    FROM (
      SELECT id, name, removed_at, connected_at FROM participants
      WHERE room_id = ${roomId} AND environment_id = ${environmentId}
        ${beforeId === null ? Prisma.empty : Prisma.sql`AND id < ${beforeId}`}
      ORDER BY id DESC LIMIT ${limit}
    ) p CROSS JOIN LATERAL (
      SELECT * FROM participant_tokens WHERE participant_id = p.id ORDER BY id DESC LIMIT 1
    ) t
    ORDER BY p.id DESC`;
}
