import { newId, type RoomStatus, type Tenant } from '@callplane/core';
import { insertParticipantIfOpen, type TypedSql } from '@callplane/db';

export interface TestParticipant {
  participantId: string;
  tokenId: string;
  /** Of the room; nothing was written unless it is open. Null when there is no such room. */
  roomStatus: RoomStatus | null;
}

/** A participant whose token was issued at this moment for ten minutes, written as the API writes it. */
export async function inviteTestParticipant(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  createdAt: Date,
  participantId = newId('participant'),
): Promise<TestParticipant> {
  const tokenId = newId('token');
  const expiresAt = new Date(createdAt.getTime() + 600_000);
  const roomStatus = await insertParticipantIfOpen(db, tenant, {
    id: participantId,
    roomId,
    externalId: null,
    name: 'Ada',
    metadata: {},
    role: 'participant',
    createdAt,
    token: { id: tokenId, permissions: ['room:join'], expiresAt },
  });
  return { participantId, tokenId, roomStatus };
}
