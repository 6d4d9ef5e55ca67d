import type { QualitySeconds, SessionRecord, Tenant, TrackIdentity } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

export interface SessionQuery {
  roomId: string;
  participantId: string | null;
  beforeId: string | null;
  limit: number;
}

type SessionRow = Omit<SessionRecord, 'tracks'> & {
  tracks: (TrackIdentity & { publishedAt: number; unpublishedAt: number | null })[];
};

/** Lists sessions newest first: ids sort by the time of creation. Sessions that never left the lobby are missing. */
export async function listSessions(db: TypedSql, tenant: Tenant, query: SessionQuery): Promise<SessionRecord[]> {
  // One index each: (participant_id, id) and (room_id, id).
  const of =
    query.participantId === null
      ? Prisma.sql`s.room_id = ${query.roomId}`
      : Prisma.sql`s.participant_id = ${query.participantId} AND s.room_id = ${query.roomId}`;
  const rows = await db.$queryRaw<SessionRow[]>`
    SELECT s.id, s.room_id AS "roomId", s.participant_id AS "participantId", s.started_at AS "startedAt",
      s.ended_at AS "endedAt", s.end_reason AS "endReason", s.permissions,
      json_build_object('good', s.good_seconds, 'fair', s.fair_seconds, 'poor', s.poor_seconds,
        'lost', s.lost_seconds, 'relayed', s.relayed_seconds) AS quality,
      s.past_tracks || coalesce((
        SELECT jsonb_agg(jsonb_build_object('trackId', t.track_id, 'kind', t.kind, 'source', t.source,
          'publishedAt', (extract(epoch FROM t.published_at) * 1000)::bigint, 'unpublishedAt', NULL)
          ORDER BY t.published_at, t.track_id)
        FROM session_tracks t WHERE t.session_id = s.id
      ), '[]') AS tracks
    FROM participant_sessions s
    WHERE ${of} AND s.environment_id = ${tenant.environmentId} AND NOT s.waiting
      ${query.beforeId === null ? Prisma.empty : Prisma.sql`AND s.id < ${query.beforeId}`}
    ORDER BY s.id DESC LIMIT ${query.limit}`;
  return rows.map(({ tracks, ...session }) => ({
    ...session,
    tracks: tracks.map(({ publishedAt, unpublishedAt, ...track }) => ({
      ...track,
      publishedAt: new Date(publishedAt),
      unpublishedAt: unpublishedAt === null ? null : new Date(unpublishedAt),
    })),
  }));
}

/**
 * Adds to the quality of sessions. Additions of several gateways add up, so this needs no fencing, and a session that
 * has just ended or moved still gets the earlier counts of its gateway. Participants do not see the columns, so the
 * rooms keep their versions.
 * @param additions of different sessions.
 */
export async function addQuality(
  db: TypedSql,
  additions: readonly { sessionId: string; seconds: QualitySeconds }[],
): Promise<void> {
  const added = additions.map(({ sessionId, seconds }) => ({ id: sessionId, ...seconds }));
  // The rows are locked by id, as every other writer of several sessions does.
  await db.$executeRaw`
    WITH added AS MATERIALIZED (
      SELECT * FROM jsonb_to_recordset(${JSON.stringify(added)}::jsonb)
        AS added (id text, good int, fair int, poor int, lost int, relayed int)
    ), locked AS MATERIALIZED (
      SELECT id FROM participant_sessions WHERE id = ANY(ARRAY(SELECT id FROM added)) ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE participant_sessions s
    SET good_seconds = s.good_seconds + added.good, fair_seconds = s.fair_seconds + added.fair,
      poor_seconds = s.poor_seconds + added.poor, lost_seconds = s.lost_seconds + added.lost,
      relayed_seconds = s.relayed_seconds + added.relayed
    FROM added WHERE s.id = added.id AND s.id = ANY(ARRAY(SELECT id FROM locked))`;
}
