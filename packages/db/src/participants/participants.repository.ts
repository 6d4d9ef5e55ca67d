import type {
  LiveParticipantState,
  ParticipantState,
  ParticipantStatus,
  Permission,
  RoomStatus,
  Tenant,
} from '@callplane/core';
import { newRows } from '../client/sql.js';
import type { Db, TypedSql } from '../client/database.js';
import { readRequested, type RowRequest } from '../client/row-requests.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import { LIVE_PARTICIPANT_COLUMNS } from './participant.sql.js';

export interface NewParticipant extends Omit<ParticipantState, 'tokenExpiresAt' | 'connectedAt' | 'leftAt'> {
  /** Without it, the room decides. */
  waiting?: boolean | undefined;
  token: { id: string; permissions: readonly Permission[]; expiresAt: Date };
}

export interface ParticipantToInsert {
  tenant: Tenant;
  participant: NewParticipant;
}

/**
 * Inserts participants of any tenants with their tokens, each if its room is open. A single statement reads the rooms
 * and writes all rows in one round trip.
 * @param skipLocked does not wait for rooms that other transactions have locked.
 * @returns the status of each room, in the order of the participants (nothing was written unless it is open), and null
 *   when the environment has no such room. With `skipLocked` also `busy`: the room was locked.
 */
export async function insertParticipantsIfOpen(
  db: TypedSql,
  inserts: readonly ParticipantToInsert[],
  { skipLocked }: { skipLocked: boolean },
): Promise<(RoomStatus | 'busy' | null)[]> {
  const lock = skipLocked ? Prisma.sql`FOR SHARE SKIP LOCKED` : Prisma.sql`FOR SHARE`;
  const participants = inserts.map(({ participant }) => participant);
  const rows = await db.$queryRaw<{ status: RoomStatus | null; busy: boolean }[]>`
    WITH new AS (
      SELECT * FROM ${newRows({
        at: ['int', inserts.map((_, at) => at)],
        id: ['text', participants.map(({ id }) => id)],
        environment_id: ['text', inserts.map(({ tenant }) => tenant.environmentId)],
        room_id: ['text', participants.map(({ roomId }) => roomId)],
        external_id: ['text', participants.map(({ externalId }) => externalId)],
        name: ['text', participants.map(({ name }) => name)],
        metadata: ['text', participants.map(({ metadata }) => JSON.stringify(metadata))],
        role: ['text', participants.map(({ role }) => role)],
        waiting: ['boolean', participants.map(({ waiting = null }) => waiting)],
        created_at: ['text', participants.map(({ createdAt }) => createdAt.toISOString())],
        token_id: ['text', participants.map(({ token }) => token.id)],
        permissions: ['text', participants.map(({ token }) => token.permissions.join(' '))],
        expires_at: ['text', participants.map(({ token }) => token.expiresAt.toISOString())],
      })}
    ), room AS MATERIALIZED (
      SELECT named.room_id AS id, named.environment_id, locked.status, locked.waiting_room
      FROM (SELECT DISTINCT room_id, environment_id FROM new) named CROSS JOIN LATERAL (
        -- The lock makes this and acceptRoomEnd wait for each other, so that the clean-up misses no participant.
        SELECT status, waiting_room FROM rooms WHERE id = named.room_id AND environment_id = named.environment_id
        ${lock}
      ) locked
    ), participant AS (
      INSERT INTO participants
        (id, environment_id, room_id, external_id, name, metadata, role, created_at, token_expires_at,
          waiting)
      SELECT new.id, new.environment_id, new.room_id, new.external_id, new.name, new.metadata::jsonb, new.role,
        new.created_at::timestamptz, new.expires_at::timestamptz, coalesce(new.waiting, rooms.waiting_room)
      FROM new JOIN room AS rooms
        ON rooms.id = new.room_id AND rooms.environment_id = new.environment_id AND ${isRoomOpen}
      RETURNING id
    ), token AS (
      INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
      SELECT new.token_id, new.id, string_to_array(new.permissions, ' '), new.created_at::timestamptz,
        new.expires_at::timestamptz
      FROM new JOIN participant USING (id)
    )
    SELECT room.status, room.id IS NULL AND EXISTS (
      SELECT 1 FROM rooms WHERE rooms.id = new.room_id AND rooms.environment_id = new.environment_id
    ) AS busy
    FROM new LEFT JOIN room ON room.id = new.room_id AND room.environment_id = new.environment_id
    ORDER BY new.at`;
  return rows.map(({ status, busy }) => (busy ? 'busy' : status));
}

export interface ParticipantRequest extends RowRequest {
  roomId: string;
}

/** @returns the participants in the order of the requests; null if the room has no such participant. */
export async function findParticipants(
  db: TypedSql,
  requests: readonly ParticipantRequest[],
): Promise<(LiveParticipantState | null)[]> {
  const rows = await readRequested<LiveParticipantState>(
    requests,
    (table) => db.$queryRaw`
      SELECT request.at::int AS at, ${LIVE_PARTICIPANT_COLUMNS}
      FROM ${table} JOIN participants
        ON participants.id = request.id AND participants.environment_id = request.environment_id`,
  );
  return rows.map((row, at) => (row?.roomId === requests[at]?.roomId ? row : null));
}

const PRESENCE: Record<ParticipantStatus, Prisma.Sql> = {
  active: Prisma.sql`left_at IS NULL AND NOT waiting`,
  waiting: Prisma.sql`left_at IS NULL AND waiting`,
  left: Prisma.sql`left_at IS NOT NULL`,
};

export function listParticipants(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  page: {
    status: ParticipantStatus | null;
    externalId: string | null;
    /** The last participant of the previous page. */
    after: { connectedAt: Date; id: string } | null;
    limit: number;
  },
): PromiseLike<LiveParticipantState[]> {
  const { status, externalId, after } = page;
  const conditions = [
    Prisma.sql`room_id = ${roomId}`,
    Prisma.sql`environment_id = ${tenant.environmentId}`,
    Prisma.sql`connected_at IS NOT NULL`,
    ...(status === null ? [] : [PRESENCE[status]]),
    ...(externalId === null ? [] : [Prisma.sql`external_id = ${externalId}`]),
    ...(after === null
      ? []
      : [Prisma.sql`(connected_at, id) < (${after.connectedAt.toISOString()}::timestamptz, ${after.id})`]),
  ];
  return db.$queryRaw<LiveParticipantState[]>`
    SELECT ${LIVE_PARTICIPANT_COLUMNS} FROM participants WHERE ${Prisma.join(conditions, ' AND ')}
    ORDER BY connected_at DESC, id DESC LIMIT ${page.limit}`;
}

export async function hasActiveSession(db: Db, tenant: Tenant, roomId: string, sessionId: string): Promise<boolean> {
  const { environmentId } = tenant;
  return (
    (await db.participantSession.count({
      where: { id: sessionId, roomId, environmentId, endedAt: null, waiting: false },
    })) > 0
  );
}

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

/** Lists the tokens of a room by participant, newest first. */
export function listTokens(
  db: TypedSql,
  { environmentId }: Tenant,
  roomId: string,
  { after, limit }: { after: { participantId: string; id: string } | null; limit: number },
): PromiseLike<IssuedTokenRow[]> {
  return db.$queryRaw<IssuedTokenRow[]>`
    SELECT t.id, p.id AS "participantId", p.name AS "participantName", t.permissions, t.created_at AS "createdAt",
      t.expires_at AS "expiresAt", COALESCE(t.revoked_at, p.removed_at) AS "revokedAt", (
        SELECT min(started_at) FROM participant_sessions WHERE token_id = t.id
      ) AS "connectedAt",
      -- A subquery and no join: it runs once for the list.
      (SELECT status IN ('ending', 'ended') FROM rooms WHERE id = ${roomId}) AS "isRoomOver"
    FROM (
      SELECT id, name, removed_at, connected_at FROM participants
      WHERE room_id = ${roomId} AND environment_id = ${environmentId}
        ${after === null ? Prisma.empty : Prisma.sql`AND id <= ${after.participantId}`}
      -- The last participant of the page before may have no further token.
      ORDER BY id DESC LIMIT ${limit + 1}
    ) p CROSS JOIN LATERAL (
      SELECT * FROM participant_tokens WHERE participant_id = p.id
        ${after === null ? Prisma.empty : Prisma.sql`AND (p.id, id) < (${after.participantId}, ${after.id})`}
      ORDER BY id DESC LIMIT ${limit}
    ) t
    ORDER BY p.id DESC, t.id DESC LIMIT ${limit}`;
}
