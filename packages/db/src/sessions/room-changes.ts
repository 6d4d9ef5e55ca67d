import type { Permission, RoomState, SessionEndReason, Tenant } from '@callplane/core';
import { ints, texts } from '../client/sql.js';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { ROOM_COLUMNS } from '../rooms/room.sql.js';
import { END_REASON } from './session.sql.js';
import type { RoomNodes, SessionState, TrackState } from './session.js';

type Moment = number;

type TrackTuple = [
  trackId: string,
  kind: TrackState['kind'],
  source: TrackState['source'],
  muted: boolean,
  feedId: string,
  mid: string,
  extensionId?: number | null,
];

/** A session that has ended, or a viewer of a paged room: only the fields that its instance has to know. */
type ShortTuple = [
  sessionId: string,
  participantId: string,
  connection: number,
  instanceId: string | null,
  version: number,
  gone: SessionEndReason | null,
];

type FullTuple = [
  ...ShortTuple,
  startedAt: Moment,
  permissions: Permission[],
  disconnectedAt: Moment | null,
  externalId: string | null,
  name: string,
  metadata: Record<string, unknown>,
  role: string,
  createdAt: Moment,
  tokenExpiresAt: Moment,
  connectedAt: Moment | null,
  leftAt: Moment | null,
  tracks: TrackTuple[] | null,
  waiting: boolean,
];

/**
 * A session in JSON, between PostgreSQL and the instances. Arrays and numbers, because building objects and timestamps
 * for 1,000 sessions takes ten times as long.
 */
export type SessionTuple = ShortTuple | FullTuple;

export function isFull(tuple: SessionTuple): tuple is FullTuple {
  return tuple.length > 6;
}

/** @param column a constant of this file, never external input: it goes into the SQL unescaped. */
const moment = (column: string): Prisma.Sql => Prisma.raw(`(extract(epoch FROM ${column}) * 1000)::bigint`);

const SHORT_COLUMNS = Prisma.sql`s.id, participants.id, s.connection, s.instance_id, s.version, ${END_REASON}`;

/**
 * A session with its tracks as JSON. The tables must have the names or aliases `s`, `participants`, `rooms`, and
 * `tracks (list)`, which is {@link TRACK_LIST} or null.
 */
const FULL_TUPLE = Prisma.sql`json_build_array(${SHORT_COLUMNS}, ${moment('s.started_at')}, s.permissions,
  ${moment('s.disconnected_at')}, participants.external_id, participants.name, participants.metadata, participants.role,
  ${moment('participants.created_at')}, ${moment('participants.token_expires_at')},
  ${moment('participants.connected_at')}, ${moment('participants.left_at')}, tracks.list, s.waiting)`;

/**
 * {@link FULL_TUPLE}, or the short form of a session that is over or of a viewer in a paged room. A viewer whose
 * permissions the server has set has the full form, from which its instance learns of them. So has one in the lobby.
 */
const SESSION_TUPLE = Prisma.sql`CASE
  WHEN ${END_REASON} IS NOT NULL
    OR (rooms.roster_paged AND participants.metadata = '{}'::jsonb AND tracks.list IS NULL
      AND participants.permissions = '{}' AND NOT s.waiting)
  THEN json_build_array(${SHORT_COLUMNS}) ELSE ${FULL_TUPLE} END`;

const TRACK_LIST = Prisma.sql`json_agg(json_build_array(t.track_id, t.kind, t.source, t.muted, t.feed_id, t.mid,
  t.extension_id) ORDER BY t.published_at, t.track_id)`;

/** @throws if the tuple is short. */
export function toSession(roomId: string, tuple: SessionTuple): SessionState {
  if (!isFull(tuple)) throw new Error(`${tuple[0]} is a short tuple`);
  const [sessionId, id, connection, instanceId, version, , startedAt, permissions, disconnectedAt, ...person] = tuple;
  const [externalId, name, metadata, role, createdAt, tokenExpiresAt, connectedAt, leftAt, tracks, waiting] = person;
  return {
    sessionId,
    version,
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
    waiting,
    tracks: (tracks ?? []).map(([trackId, kind, source, muted, feedId, mid, extensionId]) => {
      const track = { trackId, kind, source, muted, feedId, mid };
      return extensionId == null ? track : { ...track, extensionId };
    }),
  };
}

/** The inverse of {@link toSession}. @param hidesViewer whether a viewer gets the short form, as in a paged room */
export function toTuple(session: SessionState, hidesViewer: boolean): SessionTuple {
  const { sessionId, participant, connection, instanceId, version, startedAt, permissions, disconnectedAt } = session;
  const short: ShortTuple = [sessionId, participant.id, connection, instanceId, version, null];
  const { tracks, waiting } = session;
  if (hidesViewer && !waiting && tracks.length === 0 && Object.keys(participant.metadata).length === 0) return short;
  const { externalId, name, metadata, role, createdAt, tokenExpiresAt, connectedAt, leftAt } = participant;
  return [
    ...short,
    startedAt.getTime(),
    [...permissions],
    disconnectedAt?.getTime() ?? null,
    externalId,
    name,
    metadata,
    role,
    createdAt.getTime(),
    tokenExpiresAt.getTime(),
    connectedAt?.getTime() ?? null,
    leftAt?.getTime() ?? null,
    tracks.map(({ trackId, kind, source, muted, feedId, mid, extensionId }): TrackTuple => {
      return [trackId, kind, source, muted, feedId, mid, extensionId ?? null];
    }),
    waiting,
  ];
}

function toDate(at: Moment | null): Date | null {
  return at === null ? null : new Date(at);
}

export interface RoomRead {
  roomId: string;
  /** The version that the reader knows; null reads the whole room. */
  after: number | null;
}

export interface RoomChanges extends RoomNodes {
  tenant: Tenant;
  room: RoomState;
  sequence: number;
  version: number;
  /** Whether clients get the roster in pages. Viewers of such a room are short tuples. */
  rosterPaged: boolean;
  /** The version that the changes begin after; null: the sessions are all live sessions of the room. */
  after: number | null;
  /** Sessions that are over are included only if `after` is not null. */
  sessions: SessionTuple[];
}

type RoomChangesRow = Omit<RoomChanges, 'tenant' | 'room' | 'sessions'> &
  RoomState & { projectId: string; environmentId: string; sessions: SessionTuple[] | null };

/**
 * Reads the changes of rooms, in one statement; rooms that do not exist are missing. Versions commit in order,
 * because the row of the room stays locked until the commit. So a reader of version v sees every change up to v.
 *
 * A participant that is being removed counts as gone, although its session continues until its clean-up ends it.
 */
export async function readRoomChanges(db: TypedSql, reads: readonly RoomRead[]): Promise<Map<string, RoomChanges>> {
  if (reads.length === 0) return new Map();
  const rows = await db.$queryRaw<RoomChangesRow[]>`
    SELECT ${ROOM_COLUMNS}, rooms.environment_id AS "environmentId", environments.project_id AS "projectId",
      rooms.last_sequence AS "sequence", rooms.media_node_id AS "mediaNodeId",
      rooms.media_generation AS "mediaGeneration", rooms.further_node_ids AS "furtherNodeIds", rooms.version, rooms.roster_paged AS "rosterPaged",
      -- A reader that is ahead knows a version that a restored database has lost.
      CASE WHEN input.after <= rooms.version THEN input.after END AS after,
      CASE WHEN input.after <= rooms.version THEN (
        SELECT json_agg(${SESSION_TUPLE} ORDER BY s.id)
        FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
        LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
        -- The second condition is the one of the index.
        WHERE s.room_id = rooms.id AND s.version > input.after AND s.version > 0
      ) ELSE (
        SELECT json_agg(${SESSION_TUPLE} ORDER BY s.id)
        FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
        -- One look-up for each session: joining an aggregate over all tracks took 4.3 s instead of 57 ms (measured).
        LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
        WHERE s.room_id = rooms.id AND s.ended_at IS NULL AND participants.removed_at IS NULL
      ) END AS sessions
    FROM unnest(${texts(reads.map(({ roomId }) => roomId))}, ${ints(reads.map(({ after }) => after))})
      AS input (room_id, after)
    -- With OFFSET, PostgreSQL looks up each room. Without, it might read all rooms for a hash join, because it plans the
    -- statement once, for ten rooms.
    CROSS JOIN LATERAL (SELECT * FROM rooms r WHERE r.id = input.room_id OFFSET 0) rooms
    JOIN environments ON environments.id = rooms.environment_id`;
  return new Map(rows.map((row) => [row.id, toChanges(row)]));
}

function toChanges(row: RoomChangesRow): RoomChanges {
  const { projectId, environmentId, sequence, version, rosterPaged, ...others } = row;
  const { mediaNodeId, mediaGeneration, furtherNodeIds, ...rest } = others;
  const { after, sessions, ...room } = rest;
  const info = { tenant: { projectId, environmentId }, room, sequence, mediaNodeId, mediaGeneration, furtherNodeIds };
  return { ...info, version, rosterPaged, after, sessions: sessions ?? [] };
}

/** The states of sessions with their tracks, by session id. Sessions that are over are included. */
export async function readSessions(db: TypedSql, sessionIds: readonly string[]): Promise<Map<string, SessionState>> {
  if (sessionIds.length === 0) return new Map();
  const rows = await db.$queryRaw<{ roomId: string; tuple: FullTuple }[]>`
    SELECT s.room_id AS "roomId", ${FULL_TUPLE} AS tuple
    FROM participant_sessions s JOIN participants ON participants.id = s.participant_id
    JOIN rooms ON rooms.id = s.room_id
    LEFT JOIN LATERAL (SELECT ${TRACK_LIST} AS list FROM session_tracks t WHERE t.session_id = s.id) tracks ON true
    WHERE s.id = ANY(${[...sessionIds]}::text[])`;
  return new Map(rows.map(({ roomId, tuple }) => [tuple[0], toSession(roomId, tuple)]));
}

/**
 * Why a session is missing from its room: null for a live session, undefined for an unknown one. A live session in a room
 * that ends, or of a participant that is being removed, reports that as its reason.
 */
export async function readSessionEnd(db: TypedSql, sessionId: string): Promise<SessionEndReason | null | undefined> {
  const [row] = await db.$queryRaw<{ reason: SessionEndReason | null }[]>`
    SELECT ${END_REASON} AS reason FROM participant_sessions s
    JOIN participants ON participants.id = s.participant_id
    JOIN rooms ON rooms.id = s.room_id
    WHERE s.id = ${sessionId}`;
  return row?.reason;
}
