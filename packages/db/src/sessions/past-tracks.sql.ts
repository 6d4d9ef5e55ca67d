import { PAST_TRACKS_MAX } from '@callplane/core';
import { Prisma } from '../generated/client.js';

/**
 * The CTE `remembered`: appends the tracks of the CTE `ended (session_id, track_id, kind, source, published_at)` to the
 * history of their sessions, and keeps the latest ones. The caller has locked the sessions.
 */
export const rememberTracks = (now: Date): Prisma.Sql => Prisma.sql`remembered AS (
    UPDATE participant_sessions s SET past_tracks = (
      SELECT coalesce(jsonb_agg(one.track ORDER BY one.at), '[]') FROM (
        SELECT entry.track, entry.at
        FROM jsonb_array_elements(s.past_tracks || past.tracks) WITH ORDINALITY AS entry (track, at)
        ORDER BY entry.at DESC LIMIT ${PAST_TRACKS_MAX}::int
      ) one
    )
    FROM (
      SELECT session_id, jsonb_agg(jsonb_build_object('trackId', track_id, 'kind', kind, 'source', source,
        'publishedAt', (extract(epoch FROM published_at) * 1000)::bigint, 'unpublishedAt', ${now.getTime()}::bigint)
        ORDER BY published_at, track_id) AS tracks
      FROM ended GROUP BY session_id
    ) past
    WHERE s.id = past.session_id
  )`;
