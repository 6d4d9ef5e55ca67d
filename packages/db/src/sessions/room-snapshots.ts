import type { Permission, RoomState, SessionEndReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { ROOM_COLUMNS } from '../rooms/room-row.js';
import type { RoomPlacement, RoomSnapshot, SessionState, TrackState } from './session.js';

/** Milliseconds since 1970, as PostgreSQL writes them into JSON. */
type Moment = number;

/** See the statement: arrays and numbers, because objects and times of 1,000 sessions take ten times as long. */
type SessionTuple = [
  sessionId: string,
  startedAt: Moment,
  permissions: Permission[],
  instanceId: string | null,
  connection: number,
  disconnectedAt: Moment | null,
  participantId: string,
  externalId: string | null,
  name: string,
  metadata: Record<string, unknown>,
  role: string,
  createdAt: Moment,
  tokenExpiresAt: Moment,
  connectedAt: Moment | null,
  leftAt: Moment | null,
];
type TrackTuple = [
  sessionId: string,
  trackId: string,
  kind: TrackState['kind'],
  source: TrackState['source'],
  muted: boolean,
  feedId: string,
  mid: string,
];

interface SnapshotRow extends RoomState, RoomPlacement {
  projectId: string;
  environmentId: string;
  sequence: number;
  sessions: SessionTuple[] | null;
  tracks: TrackTuple[] | null;
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
        SELECT json_agg(json_build_array(s.id, ${moment('s.started_at')}, s.permissions, s.instance_id, s.connection,
          ${moment('s.disconnected_at')}, p.id, p.external_id, p.name, p.metadata, p.role, ${moment('p.created_at')},
          ${moment('p.token_expires_at')}, ${moment('p.connected_at')}, ${moment('p.left_at')}) ORDER BY s.id)
        FROM participant_sessions s JOIN participants p ON p.id = s.participant_id
        WHERE s.room_id = rooms.id AND s.ended_at IS NULL AND p.removed_at IS NULL
      ) AS sessions,
      (
        SELECT json_agg(json_build_array(t.session_id, t.track_id, t.kind, t.source, t.muted, t.feed_id, t.mid)
          ORDER BY t.published_at, t.track_id)
        FROM participant_sessions s JOIN session_tracks t ON t.session_id = s.id
        WHERE s.room_id = rooms.id AND s.ended_at IS NULL
      ) AS tracks
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

/** @param column a name of this file's own, never something from outside. */
function moment(column: string): Prisma.Sql {
  return Prisma.raw(`(extract(epoch FROM ${column}) * 1000)::bigint`);
}

function toSnapshot(row: SnapshotRow): RoomSnapshot {
  const { projectId, environmentId, sequence, mediaNodeId, mediaGeneration, sessions, tracks, ...room } = row;
  const shown = (sessions ?? []).map((session) => toSession(room.id, session));
  const tracksOf = new Map(shown.map((session) => [session.sessionId, session.tracks]));
  for (const [sessionId, trackId, kind, source, muted, feedId, mid] of tracks ?? []) {
    tracksOf.get(sessionId)?.push({ trackId, kind, source, muted, feedId, mid });
  }
  return { tenant: { projectId, environmentId }, room, sequence, mediaNodeId, mediaGeneration, sessions: shown };
}

function toSession(
  roomId: string,
  [
    sessionId,
    startedAt,
    permissions,
    instanceId,
    connection,
    disconnectedAt,
    id,
    externalId,
    name,
    metadata,
    role,
    createdAt,
    tokenExpiresAt,
    connectedAt,
    leftAt,
  ]: SessionTuple,
): SessionState {
  return {
    sessionId,
    participant: {
      id,
      roomId,
      externalId,
      name,
      metadata,
      role,
      createdAt: new Date(createdAt),
      tokenExpiresAt: new Date(tokenExpiresAt),
      connectedAt: toDate(connectedAt),
      leftAt: toDate(leftAt),
    },
    startedAt: new Date(startedAt),
    permissions,
    instanceId,
    connection,
    disconnectedAt: toDate(disconnectedAt),
    tracks: [],
  };
}

function toDate(at: Moment | null): Date | null {
  return at === null ? null : new Date(at);
}
