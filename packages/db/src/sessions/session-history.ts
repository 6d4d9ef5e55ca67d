import type {
  Permission,
  QualitySeconds,
  SessionEndReason,
  SessionRecord,
  Tenant,
  TrackIdentity,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** Which sessions to list: those of a room, or those of one of its participants. */
export interface SessionsWanted {
  roomId: string;
  participantId: string | null;
  /** The last id of the previous page. */
  beforeId: string | null;
  limit: number;
}

interface StoredTrack extends TrackIdentity {
  publishedAt: number;
  unpublishedAt: number | null;
}

interface SessionRow {
  id: string;
  roomId: string;
  participantId: string;
  startedAt: Date;
  endedAt: Date | null;
  endReason: SessionEndReason | null;
  permissions: Permission[];
  pastTracks: StoredTrack[];
  tracks: StoredTrack[] | null;
  good: number;
  fair: number;
  poor: number;
  lost: number;
  relayed: number;
}

/** Lists sessions newest first: ids sort by the time of creation. */
export async function listSessions(db: TypedSql, tenant: Tenant, wanted: SessionsWanted): Promise<SessionRecord[]> {
  // One index each: (participant_id, id) and (room_id, id).
  const of =
    wanted.participantId === null
      ? Prisma.sql`s.room_id = ${wanted.roomId}`
      : Prisma.sql`s.participant_id = ${wanted.participantId} AND s.room_id = ${wanted.roomId}`;
  const rows = await db.$queryRaw<SessionRow[]>`
    SELECT s.id, s.room_id AS "roomId", s.participant_id AS "participantId", s.started_at AS "startedAt",
      s.ended_at AS "endedAt", s.end_reason AS "endReason", s.permissions, s.past_tracks AS "pastTracks",
      s.good_seconds AS good, s.fair_seconds AS fair, s.poor_seconds AS poor, s.lost_seconds AS lost,
      s.relayed_seconds AS relayed, (
        SELECT json_agg(json_build_object('trackId', t.track_id, 'kind', t.kind, 'source', t.source,
          'publishedAt', (extract(epoch FROM t.published_at) * 1000)::bigint, 'unpublishedAt', NULL)
          ORDER BY t.published_at, t.track_id)
        FROM session_tracks t WHERE t.session_id = s.id
      ) AS tracks
    FROM participant_sessions s
    WHERE ${of} AND s.environment_id = ${tenant.environmentId}
      ${wanted.beforeId === null ? Prisma.empty : Prisma.sql`AND s.id < ${wanted.beforeId}`}
    ORDER BY s.id DESC LIMIT ${wanted.limit}`;
  return rows.map(toRecord);
}

function toRecord({ pastTracks, tracks, good, fair, poor, lost, relayed, ...session }: SessionRow): SessionRecord {
  return {
    ...session,
    tracks: [...pastTracks, ...(tracks ?? [])].map(({ publishedAt, unpublishedAt, ...track }) => ({
      ...track,
      publishedAt: new Date(publishedAt),
      unpublishedAt: unpublishedAt === null ? null : new Date(unpublishedAt),
    })),
    quality: { good, fair, poor, lost, relayed },
  };
}

/** Seconds of a session that are not written yet. */
export interface QualityAddition {
  sessionId: string;
  seconds: QualitySeconds;
}

/**
 * Adds to the quality of sessions. Additions of several gateways add up, so this needs no fencing, and a session that
 * has just ended or moved still gets what its gateway counted before. Participants do not see the columns, so the rooms
 * keep their versions.
 * @param additions of different sessions.
 */
export async function addQuality(db: TypedSql, additions: readonly QualityAddition[]): Promise<void> {
  if (additions.length === 0) return;
  const of = (key: keyof QualitySeconds): number[] => additions.map(({ seconds }) => seconds[key]);
  // The rows are locked by id, like those of every other writer of several sessions.
  await db.$executeRaw`
    WITH locked AS MATERIALIZED (
      SELECT id FROM participant_sessions WHERE id = ANY(${additions.map(({ sessionId }) => sessionId)}::text[])
      ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE participant_sessions s
    SET good_seconds = s.good_seconds + added.good, fair_seconds = s.fair_seconds + added.fair,
      poor_seconds = s.poor_seconds + added.poor, lost_seconds = s.lost_seconds + added.lost,
      relayed_seconds = s.relayed_seconds + added.relayed
    FROM unnest(${additions.map(({ sessionId }) => sessionId)}::text[], ${of('good')}::int[], ${of('fair')}::int[],
      ${of('poor')}::int[], ${of('lost')}::int[], ${of('relayed')}::int[])
      AS added (id, good, fair, poor, lost, relayed)
    WHERE s.id = added.id AND s.id = ANY(ARRAY(SELECT id FROM locked))`;
}
