import type { ParticipantState, ParticipantStatus, Permission, RoomStatus, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';

export interface NewParticipant {
  id: string;
  roomId: string;
  externalId: string | null;
  name: string;
  metadata: Record<string, unknown>;
  role: string;
  createdAt: Date;
  token: { id: string; permissions: readonly Permission[]; expiresAt: Date };
}

const SHOWN = {
  id: true,
  roomId: true,
  externalId: true,
  name: true,
  metadata: true,
  role: true,
  createdAt: true,
  tokenExpiresAt: true,
  connectedAt: true,
  leftAt: true,
} as const;

/**
 * A participant identity with its token, when the room is open.
 * One statement, typed here because it is hot: the room is looked up and both rows are written in one round trip.
 * @returns the room's status (nothing was written unless it is open), or null when there is no such room.
 */
export async function insertParticipantIfOpen(
  db: TypedSql,
  tenant: Tenant,
  participant: NewParticipant,
): Promise<RoomStatus | null> {
  const createdAt = participant.createdAt.toISOString();
  const expiresAt = participant.token.expiresAt.toISOString();
  const [room] = await db.$queryRaw<{ status: RoomStatus }[]>`
    WITH room AS (
      -- The lock makes this and acceptRoomEnd wait for each other, so that the clean-up misses nobody.
      SELECT id, status FROM rooms WHERE id = ${participant.roomId} AND environment_id = ${tenant.environmentId}
      FOR SHARE
    ), participant AS (
      INSERT INTO participants
        (id, environment_id, room_id, external_id, name, metadata, role, created_at, token_expires_at)
      SELECT ${participant.id}, ${tenant.environmentId}, id, ${participant.externalId}, ${participant.name},
        ${JSON.stringify(participant.metadata)}::jsonb, ${participant.role}, ${createdAt}::timestamptz,
        ${expiresAt}::timestamptz
      FROM room WHERE status IN ('created', 'active')
      RETURNING id
    ), token AS (
      INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
      SELECT ${participant.token.id}, id, ${[...participant.token.permissions]}::text[], ${createdAt}::timestamptz,
        ${expiresAt}::timestamptz
      FROM participant
    )
    SELECT status FROM room`;
  return room?.status ?? null;
}

export async function findParticipant(
  db: Db,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<ParticipantState | null> {
  const participant = await db.participant.findFirst({
    where: { id: participantId, roomId, environmentId: tenant.environmentId },
    select: SHOWN,
  });
  return participant as ParticipantState | null;
}

/** Where a page of participants begins: after this one, in the list's order. */
export interface ParticipantPosition {
  connectedAt: Date;
  id: string;
}

/** Those who have connected, the latest first. */
export async function listParticipants(
  db: Db,
  tenant: Tenant,
  roomId: string,
  page: { status: ParticipantStatus | null; after: ParticipantPosition | null; limit: number },
): Promise<ParticipantState[]> {
  const participants = await db.participant.findMany({
    where: {
      roomId,
      environmentId: tenant.environmentId,
      connectedAt: { not: null },
      ...(page.status === null ? {} : { leftAt: page.status === 'active' ? null : { not: null } }),
      ...(page.after === null
        ? {}
        : {
            OR: [
              { connectedAt: { lt: page.after.connectedAt } },
              { connectedAt: page.after.connectedAt, id: { lt: page.after.id } },
            ],
          }),
    },
    orderBy: [{ connectedAt: 'desc' }, { id: 'desc' }],
    take: page.limit,
    select: SHOWN,
  });
  return participants as ParticipantState[];
}

/** Whether a participant's session in this room is still going on. */
export async function hasActiveSession(db: Db, tenant: Tenant, roomId: string, sessionId: string): Promise<boolean> {
  const session = await db.participantSession.findFirst({
    where: { id: sessionId, roomId, environmentId: tenant.environmentId, endedAt: null },
    select: { id: true },
  });
  return session !== null;
}
