import { newId, type RoomStatus, type Tenant } from '@callplane/core';
import { insertParticipantsIfOpen, type NewParticipant, type TypedSql } from '@callplane/db';

export interface TestParticipant {
  participantId: string;
  tokenId: string;
  /** The room's status, or null if there is no such room. Unless the room is open, no participant was created. */
  roomStatus: RoomStatus | null;
}

/** @returns the room's status (nothing was written unless the room is open), or null when the room does not exist. */
export async function insertTestParticipant(
  db: TypedSql,
  tenant: Tenant,
  participant: NewParticipant,
): Promise<RoomStatus | null> {
  const [status = null] = await insertParticipantsIfOpen(db, [{ tenant, participant }], { skipLocked: false });
  return status === 'busy' ? null : status;
}

/** Creates a participant as the API does, with a token issued now for ten minutes. */
export async function inviteTestParticipant(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  createdAt: Date,
  participantId = newId('participant'),
): Promise<TestParticipant> {
  const tokenId = newId('token');
  const expiresAt = new Date(createdAt.getTime() + 600_000);
  const roomStatus = await insertTestParticipant(db, tenant, {
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
