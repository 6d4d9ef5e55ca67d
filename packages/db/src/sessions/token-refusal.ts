import type { TypedSql } from '../client/database.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import type { JoinInput } from './session.js';

type TokenRefusal = 'room_ended' | 'removed' | 'token_revoked' | 'not_found';

/** @returns why the token could not join at this moment, apart from a full room; null if it could. Writes nothing. */
export async function refusalOfToken(
  db: TypedSql,
  { tenant, roomId, participantId, tokenId }: Pick<JoinInput, 'tenant' | 'roomId' | 'participantId' | 'tokenId'>,
): Promise<TokenRefusal | null> {
  const [row] = await db.$queryRaw<{ refusal: TokenRefusal | null }[]>`
    SELECT CASE WHEN participants.removed_at IS NOT NULL THEN 'removed'
      WHEN t.revoked_at IS NOT NULL THEN 'token_revoked' WHEN NOT ${isRoomOpen} THEN 'room_ended' END AS refusal
    FROM participants JOIN participant_tokens t ON t.id = ${tokenId} AND t.participant_id = participants.id
    JOIN rooms ON rooms.id = participants.room_id
    WHERE participants.id = ${participantId} AND participants.room_id = ${roomId}
      AND participants.environment_id = ${tenant.environmentId}`;
  return row === undefined ? 'not_found' : row.refusal;
}
