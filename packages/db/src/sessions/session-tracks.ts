import { publishableSources, trackEvent, type Permission, type TrackIdentity } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import {
  bumpRooms,
  deleteTracks,
  isHeld,
  lockHeld,
  SUBJECT_COLUMNS,
  SUBJECT_TABLES,
  toSubject,
  type SubjectRow,
} from './session.sql.js';
import type { HeldSession, TracksOutcome, TrackState } from './session.js';

const NOT_WRITTEN: TracksOutcome = { written: false, deliveries: [] };

/**
 * Replaces the set of tracks that a session publishes, and writes events for new and ended tracks. A track that is
 * published again under its id, after a fault of the media server, only gets a new location and no event.
 *
 * Tracks without permission are left out: the server may have withdrawn it since the gateway checked the offer.
 */
export async function publishTracks(
  database: Database,
  held: HeldSession,
  tracks: readonly TrackState[],
  now: Date,
): Promise<TracksOutcome> {
  return database.transaction(async (sql) => {
    const [row] = await sql.$queryRaw<(SubjectRow & { permissions: Permission[] })[]>`
      SELECT ${SUBJECT_COLUMNS}, s.permissions FROM ${SUBJECT_TABLES} WHERE ${isHeld(held)} FOR NO KEY UPDATE OF s`;
    if (row === undefined) return NOT_WRITTEN;
    const allowed = publishableSources(row.permissions);
    const permitted = tracks.filter(({ source }) => allowed.includes(source));
    const { unpublished, fresh } = await replaceTracks(sql, held.sessionId, permitted, now);
    await sql.$executeRaw`
      WITH ${bumpRooms(Prisma.sql`SELECT ${row.roomId}`)}
      UPDATE participant_sessions s SET version = room.version
      FROM room WHERE s.id = ${held.sessionId}`;
    const subject = toSubject(row);
    const of = { tenant: subject.tenant, room: subject.room, now };
    const published = permitted.filter(({ trackId }) => fresh.has(trackId));
    const { deliveries } = await writeEvents(sql, [
      ...unpublished.map((track) => trackEvent('track.unpublished', of, subject, track)),
      ...published.map((track) => trackEvent('track.published', of, subject, track)),
    ]);
    return { written: true, deliveries };
  });
}

/** @returns the deleted tracks, and the ids of the new ones. */
async function replaceTracks(
  sql: TypedSql,
  sessionId: string,
  tracks: readonly TrackState[],
  now: Date,
): Promise<{ unpublished: TrackIdentity[]; fresh: Set<string> }> {
  const ids = tracks.map(({ trackId }) => trackId);
  const kinds = tracks.map(({ kind }) => kind);
  const sources = tracks.map(({ source }) => source);
  // A separate statement, so that the insertion below does not conflict with the deleted rows.
  const others = Prisma.sql`session_id = ${sessionId} AND (track_id, kind, source) NOT IN (
    SELECT * FROM unnest(${ids}::text[], ${kinds}::text[], ${sources}::text[]))`;
  const unpublished = await deleteTracks(sql, others, now);
  const inserted = await sql.$queryRaw<{ trackId: string; isNew: boolean }[]>`
    INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted,
      extension_id, published_at)
    SELECT ${sessionId}, track_id, kind, source, feed_id, mid, muted, extension_id,
      ${now.toISOString()}::timestamptz
    FROM unnest(${ids}::text[], ${kinds}::text[], ${sources}::text[], ${tracks.map(({ feedId }) => feedId)}::text[],
      ${tracks.map(({ mid }) => mid)}::text[], ${tracks.map(({ muted }) => muted)}::boolean[],
      ${tracks.map(({ extensionId }) => extensionId ?? null)}::int[])
      AS new (track_id, kind, source, feed_id, mid, muted, extension_id)
    ON CONFLICT (session_id, track_id) DO UPDATE
      -- A publication unmutes nothing: the client may not know that the server has muted the track.
      SET feed_id = excluded.feed_id, mid = excluded.mid, muted = excluded.muted OR session_tracks.muted,
        extension_id = excluded.extension_id
    -- Only a row that was just inserted has no transaction that ended or locked it.
    RETURNING track_id AS "trackId", xmax = 0 AS "isNew"`;
  return { unpublished, fresh: new Set(inserted.filter(({ isNew }) => isNew).map(({ trackId }) => trackId)) };
}

export interface MuteChange {
  held: HeldSession;
  trackId: string;
  muted: boolean;
}

/**
 * @param changes of different sessions.
 * @returns for each change whether the connection holds the session, and the session has the track
 */
export async function setTracksMuted(database: Database, changes: readonly MuteChange[]): Promise<boolean[]> {
  const held = changes.map((change) => change.held);
  const sessionIds = held.map(({ sessionId }) => sessionId);
  const trackIds = changes.map(({ trackId }) => trackId);
  const hasTrack = Prisma.sql`EXISTS (
    SELECT 1 FROM session_tracks t
    JOIN unnest(${sessionIds}::text[], ${trackIds}::text[]) AS track (session_id, id)
      ON track.session_id = t.session_id AND track.id = t.track_id
    WHERE t.session_id = s.id
  )`;
  const rows = await database.sql.$queryRaw<{ id: string }[]>`
    WITH ${lockHeld(held, hasTrack)}, ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM held`)}, muted AS (
      UPDATE session_tracks t SET muted = input.muted
      FROM unnest(${sessionIds}::text[], ${trackIds}::text[], ${changes.map(({ muted }) => muted)}::boolean[])
        AS input (session_id, track_id, muted)
      WHERE t.session_id = ANY(ARRAY(SELECT id FROM held)) AND t.session_id = input.session_id
        AND t.track_id = input.track_id
    )
    UPDATE participant_sessions s SET version = room.version FROM held JOIN room ON room.id = held.room_id
    WHERE s.id = held.id RETURNING s.id`;
  const ids = new Set(rows.map(({ id }) => id));
  return held.map(({ sessionId }) => ids.has(sessionId));
}
