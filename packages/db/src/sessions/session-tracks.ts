import type { TrackIdentity } from '@callplane/core';
import type { Database } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { isHeld, SUBJECT_COLUMNS, SUBJECT_TABLES, toSubject, type SubjectRow } from './held-session.js';
import { sessionEvents } from './session-events.js';
import type { HeldSession, TracksOutcome, TrackState } from './session.js';

const NOT_WRITTEN: TracksOutcome = { written: false, deliveries: [] };

/**
 * What a session publishes from now on, all of it: tells of those that are new and of those that ended. One that is
 * published anew under its id, after a fault of the media server, only changes its place.
 */
export async function publishTracks(
  database: Database,
  held: HeldSession,
  tracks: readonly TrackState[],
  now: Date,
): Promise<TracksOutcome> {
  return database.transaction(async (tx) => {
    const [row] = await tx.$queryRaw<SubjectRow[]>`
      SELECT ${SUBJECT_COLUMNS} FROM ${SUBJECT_TABLES} WHERE ${isHeld(held)} FOR NO KEY UPDATE OF s`;
    if (row === undefined) return NOT_WRITTEN;
    const wanted = {
      ids: tracks.map(({ trackId }) => trackId),
      kinds: tracks.map(({ kind }) => kind),
      sources: tracks.map(({ source }) => source),
    };
    // A statement of its own, so that the insertion below finds what it has deleted gone.
    const unpublished = await tx.$queryRaw<TrackIdentity[]>`
      DELETE FROM session_tracks
      WHERE session_id = ${held.sessionId} AND (track_id, kind, source) NOT IN (
        SELECT * FROM unnest(${wanted.ids}::text[], ${wanted.kinds}::text[], ${wanted.sources}::text[])
      )
      RETURNING track_id AS "trackId", kind, source`;
    const inserted = await tx.$queryRaw<{ trackId: string; isNew: boolean }[]>`
      INSERT INTO session_tracks (session_id, track_id, kind, source, feed_id, mid, muted, published_at)
      SELECT ${held.sessionId}, track_id, kind, source, feed_id, mid, muted, ${now.toISOString()}::timestamptz
      FROM unnest(${wanted.ids}::text[], ${wanted.kinds}::text[], ${wanted.sources}::text[],
        ${tracks.map(({ feedId }) => feedId)}::text[], ${tracks.map(({ mid }) => mid)}::text[],
        ${tracks.map(({ muted }) => muted)}::boolean[]) AS new (track_id, kind, source, feed_id, mid, muted)
      ON CONFLICT (session_id, track_id) DO UPDATE
        SET feed_id = excluded.feed_id, mid = excluded.mid, muted = excluded.muted
      -- Only a row that was just inserted has no transaction that ended or locked it.
      RETURNING track_id AS "trackId", xmax = 0 AS "isNew"`;
    const fresh = new Set(inserted.filter(({ isNew }) => isNew).map(({ trackId }) => trackId));
    const subject = toSubject(row);
    const events = sessionEvents(subject.tenant, subject.room, now);
    const { deliveries } = await writeEvents(
      tx,
      subject.tenant,
      subject.room.id,
      [
        ...unpublished.map((track) => events.unpublished(subject, track)),
        ...tracks.filter(({ trackId }) => fresh.has(trackId)).map((track) => events.published(subject, track)),
      ],
      now,
    );
    return { written: true, deliveries };
  });
}

export function unpublishAll(database: Database, held: HeldSession, now: Date): Promise<TracksOutcome> {
  return publishTracks(database, held, [], now);
}

/** Whether a track is muted is shown to others, but not worth an event. */
export async function setTrackMuted(
  database: Database,
  held: HeldSession,
  trackId: string,
  muted: boolean,
): Promise<TracksOutcome> {
  const rows = await database.hot.$queryRaw<unknown[]>`
    UPDATE session_tracks t SET muted = ${muted} FROM participant_sessions s
    WHERE t.session_id = s.id AND t.track_id = ${trackId} AND ${isHeld(held)} RETURNING 1`;
  return { written: rows.length > 0, deliveries: [] };
}

/** Replaces the metadata of the participant whose session this is. False when another connection has it, or it ended. */
export async function updateOwnMetadata(
  database: Database,
  held: HeldSession,
  metadata: Record<string, unknown>,
): Promise<boolean> {
  const rows = await database.hot.$queryRaw<unknown[]>`
    UPDATE participants SET metadata = ${JSON.stringify(metadata)}::jsonb FROM participant_sessions s
    WHERE participants.id = s.participant_id AND participants.removed_at IS NULL AND ${isHeld(held)} RETURNING 1`;
  return rows.length > 0;
}
