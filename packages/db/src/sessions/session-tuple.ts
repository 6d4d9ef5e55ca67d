import type { Permission, SessionEndReason } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { END_REASON } from './session.sql.js';
import type { SessionState, TrackState } from './session.js';

type Moment = number;

type TrackTuple = [
  trackId: string,
  kind: TrackState['kind'],
  source: TrackState['source'],
  muted: boolean,
  feedId: string,
  mid: string,
];

/** A session that has ended, or a viewer of a paged room: only what the instance that holds it has to know. */
type ShortTuple = [
  sessionId: string,
  participantId: string,
  connection: number,
  instanceId: string | null,
  version: number,
  gone: SessionEndReason | null,
];

export type FullTuple = [
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
export const FULL_TUPLE = Prisma.sql`json_build_array(${SHORT_COLUMNS}, ${moment('s.started_at')}, s.permissions,
  ${moment('s.disconnected_at')}, participants.external_id, participants.name, participants.metadata, participants.role,
  ${moment('participants.created_at')}, ${moment('participants.token_expires_at')},
  ${moment('participants.connected_at')}, ${moment('participants.left_at')}, tracks.list)`;

/**
 * {@link FULL_TUPLE}, or the short form of a session that is over or of a viewer in a paged room. A viewer whose
 * permissions the server has set has the full form, from which its instance learns of them.
 */
export const SESSION_TUPLE = Prisma.sql`CASE
  WHEN ${END_REASON} IS NOT NULL
    OR (rooms.roster_paged AND participants.metadata = '{}'::jsonb AND tracks.list IS NULL
      AND participants.permissions = '{}')
  THEN json_build_array(${SHORT_COLUMNS}) ELSE ${FULL_TUPLE} END`;

export const TRACK_LIST = Prisma.sql`json_agg(json_build_array(t.track_id, t.kind, t.source, t.muted, t.feed_id, t.mid)
  ORDER BY t.published_at, t.track_id)`;

/** @throws if the tuple is short. */
export function toSession(roomId: string, tuple: SessionTuple): SessionState {
  if (!isFull(tuple)) throw new Error(`${tuple[0]} is a short tuple`);
  const [sessionId, id, connection, instanceId, version, , startedAt, permissions, disconnectedAt, ...person] = tuple;
  const [externalId, name, metadata, role, createdAt, tokenExpiresAt, connectedAt, leftAt, tracks] = person;
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
    tracks: (tracks ?? []).map(([trackId, kind, source, muted, feedId, mid]) => {
      return { trackId, kind, source, muted, feedId, mid };
    }),
  };
}

/** The inverse of {@link toSession}. @param hidesViewer whether a viewer gets the short form, as in a paged room */
export function toTuple(session: SessionState, hidesViewer: boolean): SessionTuple {
  const { sessionId, participant, connection, instanceId, version, startedAt, permissions, disconnectedAt } = session;
  const short: ShortTuple = [sessionId, participant.id, connection, instanceId, version, null];
  const { tracks } = session;
  if (hidesViewer && tracks.length === 0 && Object.keys(participant.metadata).length === 0) return short;
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
    tracks.map(({ trackId, kind, source, muted, feedId, mid }): TrackTuple => {
      return [trackId, kind, source, muted, feedId, mid];
    }),
  ];
}

function toDate(at: Moment | null): Date | null {
  return at === null ? null : new Date(at);
}
