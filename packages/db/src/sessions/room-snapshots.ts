import type { ParticipantState, Permission, RoomState, SessionEndReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { ROOM_COLUMNS } from '../rooms/room-row.js';
import type { RoomPlacement, RoomSnapshot, SessionState, TrackState } from './session.js';

type Dates<T, Keys extends keyof T> = { [Key in keyof T]: Key extends Keys ? string | Extract<T[Key], null> : T[Key] };

interface SessionJson extends Omit<SessionState, 'participant' | 'startedAt' | 'disconnectedAt' | 'tracks'> {
  participant: Dates<ParticipantState, 'createdAt' | 'tokenExpiresAt' | 'connectedAt' | 'leftAt'>;
  startedAt: string;
  disconnectedAt: string | null;
  permissions: Permission[];
  tracks: TrackState[] | null;
}

interface SnapshotRow extends RoomState, RoomPlacement {
  projectId: string;
  environmentId: string;
  sequence: number;
  sessions: SessionJson[] | null;
}

/**
 * Rooms as they are now, read in one statement; those that do not exist are missing. Whoever is being removed is not
 * in a room any more, although its session goes on until its clean-up has ended it. Typed, because it is hot: each
 * instance reads it for each of its rooms after each change.
 */
export async function readRoomSnapshots(db: TypedSql, roomIds: readonly string[]): Promise<Map<string, RoomSnapshot>> {
  if (roomIds.length === 0) return new Map();
  const rows = await db.$queryRaw<SnapshotRow[]>`
    SELECT ${ROOM_COLUMNS}, rooms.environment_id AS "environmentId", environments.project_id AS "projectId",
      rooms.last_sequence AS "sequence", rooms.media_node_id AS "mediaNodeId",
      rooms.media_generation AS "mediaGeneration",
      (
        SELECT json_agg(json_build_object(
          'sessionId', s.id, 'startedAt', s.started_at, 'permissions', s.permissions, 'instanceId', s.instance_id,
          'connection', s.connection, 'disconnectedAt', s.disconnected_at,
          'participant', json_build_object('id', p.id, 'roomId', p.room_id, 'externalId', p.external_id,
            'name', p.name, 'metadata', p.metadata, 'role', p.role, 'createdAt', p.created_at,
            'tokenExpiresAt', p.token_expires_at, 'connectedAt', p.connected_at, 'leftAt', p.left_at),
          'tracks', (
            SELECT json_agg(json_build_object('trackId', t.track_id, 'kind', t.kind, 'source', t.source,
              'muted', t.muted, 'feedId', t.feed_id, 'mid', t.mid) ORDER BY t.published_at, t.track_id)
            FROM session_tracks t WHERE t.session_id = s.id
          )
        ) ORDER BY s.id)
        FROM participant_sessions s JOIN participants p ON p.id = s.participant_id
        WHERE s.room_id = rooms.id AND s.ended_at IS NULL AND p.removed_at IS NULL
      ) AS sessions
    FROM rooms JOIN environments ON environments.id = rooms.environment_id
    WHERE rooms.id = ANY(${[...roomIds]}::text[])`;
  return new Map(rows.map((row) => [row.id, toSnapshot(row)]));
}

/**
 * Why sessions that are in no snapshot (any more) are not: null when they are. Unknown ones are missing. A session
 * that goes on in a room that ends, or whose participant is being removed, ends for that reason.
 */
export async function readSessionEnd(
  db: TypedSql,
  sessionIds: readonly string[],
): Promise<Map<string, SessionEndReason | null>> {
  if (sessionIds.length === 0) return new Map();
  const rows = await db.$queryRaw<{ id: string; reason: SessionEndReason | null }[]>`
    SELECT s.id, CASE WHEN s.end_reason IS NOT NULL THEN s.end_reason WHEN p.removed_at IS NOT NULL THEN 'removed'
      WHEN r.status NOT IN ('created', 'active') THEN 'room_ended' END AS reason
    FROM participant_sessions s
    JOIN participants p ON p.id = s.participant_id
    JOIN rooms r ON r.id = s.room_id
    WHERE s.id = ANY(${[...sessionIds]}::text[])`;
  return new Map(rows.map(({ id, reason }) => [id, reason]));
}

function toSnapshot(row: SnapshotRow): RoomSnapshot {
  const { projectId, environmentId, sequence, mediaNodeId, mediaGeneration, sessions, ...room } = row;
  return {
    tenant: { projectId, environmentId },
    room,
    sequence,
    mediaNodeId,
    mediaGeneration,
    sessions: (sessions ?? []).map(toSession),
  };
}

function toSession({ participant, tracks, ...session }: SessionJson): SessionState {
  return {
    ...session,
    participant: {
      ...participant,
      createdAt: new Date(participant.createdAt),
      tokenExpiresAt: new Date(participant.tokenExpiresAt),
      connectedAt: toDate(participant.connectedAt),
      leftAt: toDate(participant.leftAt),
    },
    startedAt: new Date(session.startedAt),
    disconnectedAt: toDate(session.disconnectedAt),
    tracks: tracks ?? [],
  };
}

function toDate(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
