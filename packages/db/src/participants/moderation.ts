import {
  isOpen,
  participantUpdated,
  PERMISSIONS,
  publishableSources,
  sameJson,
  trackEvent,
  type NewEvent,
  type ParticipantState,
  type Permission,
  type RoomState,
  type Tenant,
  type TrackIdentity,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { Prisma } from '../generated/client.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import { touchSessions } from '../sessions/session-connection.js';
import { deleteTracks } from '../sessions/session.sql.js';
import { PARTICIPANT_COLUMNS, PARTICIPANT_PERMISSIONS } from './participant.sql.js';

export interface ParticipantPatch {
  name?: string;
  externalId?: string;
  role?: string;
  metadata?: Record<string, unknown>;
  permissions?: readonly Permission[];
}

export type ModerationRefusal = 'not_found' | 'removed' | 'moved' | 'room_ended';

export interface Moderated {
  /** The room's version after the change; null if nothing that participants see has changed. */
  version: number | null;
  deliveries: DueEndpoint[];
}

export type ParticipantUpdate =
  | { outcome: ModerationRefusal }
  | ({ outcome: 'updated'; participant: ParticipantState; permissions: Permission[] } & Moderated);

export type TrackMute =
  | { outcome: ModerationRefusal | 'no_track' }
  | ({ outcome: 'muted'; track: TrackIdentity } & Moderated);

/**
 * Changes a participant, with the permissions of its live session, in one transaction with its events. Tracks that it
 * may no longer publish are unpublished. Writes nothing if nothing changes.
 */
export function updateParticipant(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  patch: ParticipantPatch,
  now: Date,
): Promise<ParticipantUpdate> {
  return database.transaction((sql) => change(sql, tenant, roomId, participantId, patch, now));
}

export interface AnotherToken {
  id: string;
  createdAt: Date;
  expiresAt: Date;
}

/**
 * Adds a token for a participant with the permissions of the participant, in one transaction with a change of the
 * participant. A participant whose data was erased counts as removed: the erasure has revoked its tokens.
 */
export function insertAnotherToken(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  patch: ParticipantPatch,
  { id, createdAt, expiresAt }: AnotherToken,
): Promise<ParticipantUpdate> {
  return database
    .transaction(async (sql) => {
      const update = await change(sql, tenant, roomId, participantId, patch, createdAt);
      if (update.outcome !== 'updated') return update;
      const inserted = await sql.$executeRaw`
      WITH participant AS (
        UPDATE participants p SET token_expires_at = GREATEST(token_expires_at, ${expiresAt.toISOString()}::timestamptz)
        WHERE id = ${participantId} AND NOT EXISTS (
          SELECT FROM participant_tokens t WHERE t.participant_id = p.id AND t.revoked_at IS NOT NULL
        )
        RETURNING id
      )
      INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
      SELECT ${id}, id, ${update.permissions}::text[], ${createdAt.toISOString()}::timestamptz,
        ${expiresAt.toISOString()}::timestamptz
      FROM participant`;
      if (inserted === 0) throw new ErasedParticipant();
      return update;
    })
    .catch((error: unknown) => {
      if (error instanceof ErasedParticipant) return { outcome: 'removed' } as const;
      throw error;
    });
}

/** Thrown to roll back the change of a participant whose data was erased. */
class ErasedParticipant extends Error {}

async function change(
  sql: TypedSql,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  patch: ParticipantPatch,
  now: Date,
): Promise<ParticipantUpdate> {
  const locked = await lockParticipant(sql, tenant, roomId, participantId);
  if ('outcome' in locked) return locked;
  const { person, room, sessionId } = locked;
  const { permissions: before, ...participant } = person;
  const permissions = patch.permissions === undefined ? before : inOrder(patch.permissions);
  const { name, metadata, externalId, role } = { ...participant, ...patch };
  const after = { ...participant, name, metadata, externalId, role };
  const hasPermissionsChanged = permissions.join() !== inOrder(before).join();
  if (!hasPermissionsChanged && sameJson(after, participant)) {
    return { outcome: 'updated', participant, permissions, version: null, deliveries: [] };
  }
  await sql.$executeRaw`
    WITH session AS (
      UPDATE participant_sessions SET permissions = ${permissions}::text[]
      WHERE id = ${sessionId} AND ${hasPermissionsChanged}
    )
    UPDATE participants SET name = ${name}, metadata = ${JSON.stringify(metadata)}::jsonb,
      external_id = ${externalId}, role = ${role},
      permissions = CASE WHEN ${hasPermissionsChanged} THEN ${permissions}::text[] ELSE permissions END
    WHERE id = ${participantId}`;
  const withdrawn =
    sessionId !== null && hasPermissionsChanged ? await withdrawTracks(sql, sessionId, permissions, now) : [];
  const version = sessionId === null ? null : await touchSessions(sql, participantId);
  const subject = { tenant, room, now };
  const events: NewEvent[] = [participantUpdated(subject, { participant: after, sessionId }, permissions)];
  if (sessionId !== null) {
    const session = { sessionId, participant: after };
    events.unshift(...withdrawn.map((track) => trackEvent('track.unpublished', subject, session, track)));
  }
  const { deliveries } = await writeEvents(sql, events);
  return { outcome: 'updated', participant: after, permissions, version, deliveries };
}

/** Mutes a track that a participant publishes. A muted one stays as it is, without an event. */
export function muteTrack(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  trackId: string,
  now: Date,
): Promise<TrackMute> {
  return database.transaction(async (sql) => {
    const locked = await lockParticipant(sql, tenant, roomId, participantId);
    if ('outcome' in locked) return locked;
    const { person, room, sessionId } = locked;
    if (sessionId === null) return { outcome: 'no_track' };
    // Nobody else changes the track meanwhile: every writer locks its session first.
    const [row] = await sql.$queryRaw<(TrackIdentity & { muted: boolean })[]>`
      WITH muted AS (
        UPDATE session_tracks SET muted = true WHERE session_id = ${sessionId} AND track_id = ${trackId} AND NOT muted
      )
      SELECT track_id AS "trackId", kind, source, muted FROM session_tracks
      WHERE session_id = ${sessionId} AND track_id = ${trackId}`;
    if (row === undefined) return { outcome: 'no_track' };
    const { muted, ...track } = row;
    if (muted) return { outcome: 'muted', track, version: null, deliveries: [] };
    const version = await touchSessions(sql, participantId);
    const { permissions: _, ...participant } = person;
    const { deliveries } = await writeEvents(sql, [
      trackEvent('track.muted', { tenant, room, now }, { sessionId, participant }, track),
    ]);
    return { outcome: 'muted', track, version, deliveries };
  });
}

interface Locked {
  person: ParticipantState & { permissions: Permission[] };
  /** Whether it joins into the lobby. */
  waiting: boolean;
  room: RoomState;
  sessionId: string | null;
}

/** Locks the participant, then its live session, then the room, as every other writer does. */
export async function lockParticipant(
  sql: TypedSql,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<Locked | { outcome: ModerationRefusal }> {
  type Row = Locked['person'] & { removed: boolean; moved: boolean; waiting: boolean };
  const [row] = await sql.$queryRaw<Row[]>`
    SELECT ${PARTICIPANT_COLUMNS}, participants.removed_at IS NOT NULL AS removed, participants.waiting,
      ${PARTICIPANT_PERMISSIONS}, EXISTS (SELECT FROM participants other WHERE other.moved_from_id = participants.id) AS moved
    FROM participants
    WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
    FOR NO KEY UPDATE OF participants`;
  if (row === undefined) return { outcome: 'not_found' };
  const { removed, moved, waiting, ...person } = row;
  // A statement of its own: the participant's lock may have waited for a join. PostgreSQL reads the array, and so locks
  // the session, before it locks the room.
  const [locked] = await sql.$queryRaw<(RoomState & { sessionId: string | null })[]>`
    WITH live AS MATERIALIZED (
      SELECT id FROM participant_sessions WHERE participant_id = ${participantId} AND ended_at IS NULL
      FOR NO KEY UPDATE
    )
    SELECT ${ROOM_COLUMNS}, (SELECT id FROM live) AS "sessionId" FROM rooms
    WHERE id = ${roomId} AND ARRAY(SELECT id FROM live) IS NOT NULL FOR NO KEY UPDATE`;
  if (locked === undefined) return { outcome: 'not_found' };
  const { sessionId, ...room } = locked;
  if (!isOpen(room.status)) return { outcome: 'room_ended' };
  if (removed || moved) return { outcome: removed ? 'removed' : 'moved' };
  return { person, waiting, room, sessionId };
}

/** @returns the tracks that the session may no longer publish; they are unpublished. */
function withdrawTracks(
  sql: TypedSql,
  sessionId: string,
  permissions: readonly Permission[],
  now: Date,
): PromiseLike<TrackIdentity[]> {
  const withdrawn = Prisma.sql`session_id = ${sessionId} AND source <> ALL(${publishableSources(permissions)}::text[])`;
  return deleteTracks(sql, withdrawn, now);
}

/** The permissions in the order of the contract, which makes two sets comparable. */
function inOrder(permissions: readonly Permission[]): Permission[] {
  return PERMISSIONS.filter((permission) => permissions.includes(permission));
}
