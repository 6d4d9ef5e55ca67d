import type { ParticipantState, ParticipantStatus, Permission, RoomStatus, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import { PARTICIPANT_COLUMNS } from './participant.sql.js';

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
export function listParticipants(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  page: {
    status: ParticipantStatus | null;
    /** Exactly this external id; null for any. */
    externalId: string | null;
    after: ParticipantPosition | null;
    limit: number;
  },
): PromiseLike<ParticipantState[]> {
  const { status, externalId, after } = page;
  // participants_external_id_idx alone has the order by the expression. By the id PostgreSQL could use an index without
  // the external id.
  const id = externalId === null ? Prisma.sql`id` : Prisma.sql`(id || '')`;
  const conditions = [
    Prisma.sql`room_id = ${roomId}`,
    Prisma.sql`environment_id = ${tenant.environmentId}`,
    Prisma.sql`connected_at IS NOT NULL`,
    ...(status === null ? [] : [status === 'active' ? Prisma.sql`left_at IS NULL` : Prisma.sql`left_at IS NOT NULL`]),
    ...(externalId === null ? [] : [Prisma.sql`external_id = ${externalId}`]),
    ...(after === null
      ? []
      : [Prisma.sql`(connected_at, ${id}) < (${after.connectedAt.toISOString()}::timestamptz, ${after.id})`]),
  ];
  return db.$queryRaw<ParticipantState[]>`
    SELECT ${PARTICIPANT_COLUMNS} FROM participants WHERE ${Prisma.join(conditions, ' AND ')}
    ORDER BY connected_at DESC, ${id} DESC LIMIT ${page.limit}`;
}

/** Whether this session of the room has not ended. */
export async function hasActiveSession(db: Db, tenant: Tenant, roomId: string, sessionId: string): Promise<boolean> {
  const session = await db.participantSession.findFirst({
    where: { id: sessionId, roomId, environmentId: tenant.environmentId, endedAt: null },
    select: { id: true },
  });
  return session !== null;
}
