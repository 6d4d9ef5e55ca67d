import type { ParticipantState, ParticipantStatus, Permission, RoomStatus, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { isRoomOpen } from '../rooms/room.sql.js';

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
 * Inserts a participant with its token if the room is open. A single statement reads the room and
 * writes both rows in one round trip.
 * @returns the room's status (nothing was written unless the room is open), or null when the room does not exist.
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
      -- The lock makes this and acceptRoomEnd wait for each other, so that the clean-up misses no participant.
      SELECT id, status FROM rooms WHERE id = ${participant.roomId} AND environment_id = ${tenant.environmentId}
      FOR SHARE
    ), participant AS (
      INSERT INTO participants
        (id, environment_id, room_id, external_id, name, metadata, role, created_at, token_expires_at)
      SELECT ${participant.id}, ${tenant.environmentId}, id, ${participant.externalId}, ${participant.name},
        ${JSON.stringify(participant.metadata)}::jsonb, ${participant.role}, ${createdAt}::timestamptz,
        ${expiresAt}::timestamptz
      FROM room AS rooms WHERE ${isRoomOpen}
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

/** Cursor of a page of participants: the page starts after this one. */
export interface ParticipantPosition {
  connectedAt: Date;
  id: string;
}

/** Lists participants that have connected, the latest first. */
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

/** Whether this session of the room has not ended. */
export async function hasActiveSession(db: Db, tenant: Tenant, roomId: string, sessionId: string): Promise<boolean> {
  const session = await db.participantSession.findFirst({
    where: { id: sessionId, roomId, environmentId: tenant.environmentId, endedAt: null },
    select: { id: true },
  });
  return session !== null;
}
