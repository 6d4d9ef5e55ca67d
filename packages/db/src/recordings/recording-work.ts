// For the recorder. Each function that writes runs in a transaction that has asserted the lease of the operation.

import {
  MEDIA_SERVER_LOST_SECONDS,
  PERMISSION_OF_SOURCE,
  recordingEvent,
  type RecordingGap,
  type RecordingState,
  type StoredRecordingFile,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { assertLease, type ClaimedOperation } from '../operations/operation-leases.js';
import { isUnleased } from '../operations/operation.sql.js';
import { findRoom } from '../rooms/rooms.repository.js';
import { addRecordingUsage } from '../usage/usage.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { CAPTURE_COLUMNS, type StoredCapture } from './recording-captures.js';
import { STORED_COLUMNS } from './recording.sql.js';

/** An agent that lives keeps the files until the store is back, for an hour at most. */
const SHIPPING_LOST_SECONDS = 3600;

export type RecordingToProcess = RecordingState & { endedAt: Date; isDeleted: boolean };

export interface RecordingSpan {
  participantId: string;
  trackId: string;
  kind: 'audio' | 'video';
  source: NonNullable<StoredRecordingFile['source']>;
  feedId: string;
  mid: string;
  muted: boolean;
  startedAt: Date;
  endedAt: Date | null;
}

/** @returns null if the recording still runs, or a deletion has removed it. */
export async function findRecordingOf(
  db: TypedSql,
  { subjectId }: Pick<ClaimedOperation, 'subjectId'>,
): Promise<RecordingToProcess | null> {
  const [row] = await db.$queryRaw<(RecordingState & { isDeleted: boolean })[]>`
    SELECT ${STORED_COLUMNS}, NULL::int AS "queuePosition", deleted_at IS NOT NULL AS "isDeleted"
    FROM recordings WHERE id = ${subjectId}`;
  if (row === undefined || row.endedAt === null) return null;
  return { ...row, endedAt: row.endedAt };
}

/**
 * Notes when a recorder first reads that a recording is over. `endedAt` does not tell: it is a time before the commit, by
 * the clock of an API, and a pass of an agent between the two still saw a recording that runs.
 * @returns the time, by PostgreSQL's clock
 */
export async function seeRecordingEnd(db: TypedSql, recordingId: string): Promise<Date> {
  const [row] = await db.$queryRaw<{ endSeenAt: Date }[]>`
    UPDATE recordings SET end_seen_at = coalesce(end_seen_at, now()) WHERE id = ${recordingId}
    RETURNING end_seen_at AS "endSeenAt"`;
  if (row === undefined) throw new Error(`no recording ${recordingId}`);
  return row.endSeenAt;
}

/**
 * The media servers that have not yet shipped everything up to the end of a recording.
 * @param endSeenAt of {@link seeRecordingEnd}
 * @returns `isLost` if the agent of the server has been silent, or has shipped nothing, for so long that it counts as lost
 */
export function openMediaServers(
  db: TypedSql,
  roomId: string,
  endSeenAt: Date,
): PromiseLike<{ nodeId: string; isLost: boolean }[]> {
  const at = endSeenAt.toISOString();
  const fails = Prisma.sql`${roomId} = ANY(n.capture_fails)`;
  return db.$queryRaw`
    SELECT node.id AS "nodeId",
      greatest(CASE WHEN ${fails} THEN NULL ELSE n.captured_at END, ${at}::timestamptz) < now() - interval '1 second' * CASE
        WHEN n.captured_at IS NOT NULL AND n.heartbeat_at > now() - ${MEDIA_SERVER_LOST_SECONDS}::int * interval '1 second'
        THEN ${SHIPPING_LOST_SECONDS}::int ELSE ${MEDIA_SERVER_LOST_SECONDS}::int END AS "isLost"
    FROM (
      SELECT media_node_id AS id FROM rooms WHERE id = ${roomId} AND media_node_id IS NOT NULL
      UNION SELECT unnest(further_node_ids) FROM rooms WHERE id = ${roomId}
      UNION SELECT node_id FROM recording_captures WHERE room_id = ${roomId}
    ) node LEFT JOIN media_nodes n ON n.id = node.id
    WHERE n.captured_at IS NULL OR n.captured_at <= ${at}::timestamptz OR ${fails}`;
}

/** The captures and spans of the room during the recording, the oldest first. */
export async function readCaptures(
  db: TypedSql,
  { roomId, startedAt, endedAt }: Pick<RecordingToProcess, 'roomId' | 'startedAt' | 'endedAt'>,
): Promise<{ captures: StoredCapture[]; spans: RecordingSpan[] }> {
  const [from, to] = [startedAt.toISOString(), endedAt.toISOString()];
  const captures = await db.$queryRaw<StoredCapture[]>`
    SELECT ${CAPTURE_COLUMNS} FROM recording_captures
    WHERE room_id = ${roomId} AND started_at < ${to}::timestamptz AND shipped_at > ${from}::timestamptz
    ORDER BY started_at, name`;
  const spans = await db.$queryRaw<RecordingSpan[]>`
    SELECT participant_id AS "participantId", track_id AS "trackId", kind, source, feed_id AS "feedId", mid, muted,
      started_at AS "startedAt", ended_at AS "endedAt"
    FROM recording_spans
    WHERE room_id = ${roomId} AND started_at < ${to}::timestamptz
      AND coalesce(ended_at, 'infinity') > ${from}::timestamptz
    ORDER BY started_at, id`;
  return { captures, spans };
}

export interface RecordingAttendee {
  participantId: string;
  name: string;
  startedAt: Date;
  endedAt: Date | null;
}

/** The sessions with a right to publish during the recording, the oldest first. */
export function readAttendees(
  db: TypedSql,
  { roomId, startedAt, endedAt, participantId }: RecordingToProcess,
): PromiseLike<RecordingAttendee[]> {
  return db.$queryRaw<RecordingAttendee[]>`
    SELECT s.participant_id AS "participantId", p.name, s.started_at AS "startedAt", s.ended_at AS "endedAt"
    FROM participant_sessions s JOIN participants p ON p.id = s.participant_id
    WHERE s.room_id = ${roomId} AND p.id = coalesce(${participantId}::text, p.id)
      AND s.permissions && ${[...new Set(Object.values(PERMISSION_OF_SOURCE))]}::text[]
      AND s.started_at < ${endedAt.toISOString()}::timestamptz
      AND coalesce(s.ended_at, 'infinity') > ${startedAt.toISOString()}::timestamptz
    ORDER BY s.started_at, s.id`;
}

/**
 * A checkpoint: the file is in the store, and a later attempt does not make it again.
 * @param how.replacesOthers whether the recording keeps no other file
 */
export function saveRecordingFile(
  database: Database,
  claim: ClaimedOperation,
  file: StoredRecordingFile | null,
  progress: number,
  { replacesOthers = false } = {},
): Promise<void> {
  const added = JSON.stringify(file === null ? [] : [file]);
  return database.transaction(async (tx) => {
    await assertLease(tx, claim);
    await tx.$executeRaw`
      UPDATE recordings SET progress = greatest(progress, ${progress}::int),
        files = CASE WHEN ${replacesOthers}::boolean THEN '[]' ELSE files END || ${added}::jsonb
      WHERE id = ${claim.subjectId}`;
  });
}

/** Replaces the gaps by the ones of this attempt. */
export async function saveRecordingGaps(db: TypedSql, recordingId: string, gaps: readonly RecordingGap[]) {
  await db.$executeRaw`UPDATE recordings SET gaps = ${JSON.stringify(gaps)}::jsonb WHERE id = ${recordingId}`;
}

/** Ends the processing of a recording, with its event. Call it in the transaction that settles the operation. */
export async function settleRecording(
  tx: TypedSql,
  claim: Pick<ClaimedOperation, 'subjectId' | 'roomId' | 'environmentId' | 'projectId'>,
  end: { status: 'completed' } | { status: 'failed'; error: { code: string; message: string } },
  now: Date,
): Promise<DueEndpoint[]> {
  const completedAt = end.status === 'completed' ? now.toISOString() : null;
  const error = end.status === 'failed' ? JSON.stringify(end.error) : null;
  const [recording] = await tx.$queryRaw<RecordingState[]>`
    UPDATE recordings SET status = ${end.status}, completed_at = ${completedAt}::timestamptz,
      last_error = ${error}::jsonb, progress = CASE WHEN ${end.status} = 'completed' THEN 100 ELSE progress END
    WHERE id = ${claim.subjectId} AND status IN ('processing', 'failed') AND deleted_at IS NULL
    RETURNING ${STORED_COLUMNS}, NULL::int AS "queuePosition"`;
  if (recording === undefined) return [];
  const room = await findRoom(tx, claim, claim.roomId);
  if (room === null) throw new Error(`no room ${claim.roomId}`);
  const event = recordingEvent(`recording.${end.status}`, { tenant: claim, room, now }, recording);
  const { deliveries } = await writeEvents(tx, [event]);
  if (end.status === 'completed') {
    const sumOf = (field: 'bytes' | 'durationMs') => recording.files.reduce((sum, file) => sum + file[field], 0);
    await addRecordingUsage(tx, claim, { convertedMs: sumOf('durationMs'), recordedBytes: sumOf('bytes') }, now);
  }
  return deliveries;
}

/** Whether another recording of the room still needs its captures: one that runs, waits, or has failed. */
export async function areCapturesNeeded(db: TypedSql, roomId: string, exceptId: string): Promise<boolean> {
  const [row] = await db.$queryRaw<{ isNeeded: boolean }[]>`
    SELECT EXISTS (
      SELECT FROM recordings
      WHERE room_id = ${roomId} AND id <> ${exceptId} AND status <> 'completed' AND deleted_at IS NULL
    ) AS "isNeeded"`;
  return row?.isNeeded === true;
}

/** Forgets the captures of a room, which the store no longer has, unless a recording runs. */
export async function deleteCaptures(tx: TypedSql, roomId: string): Promise<void> {
  const isOver = Prisma.sql`room_id = ${roomId} AND NOT EXISTS (
    SELECT FROM recordings r WHERE r.room_id = ${roomId} AND r.status = 'recording')`;
  await tx.$executeRaw`DELETE FROM recording_captures WHERE ${isOver}`;
  await tx.$executeRaw`DELETE FROM recording_spans WHERE ${isOver}`;
}

/**
 * Ends the operation that makes the files of a recording, unless a worker holds it.
 * @returns whether no worker holds it
 */
export async function cancelProcessing(tx: TypedSql, recordingId: string, now: Date): Promise<boolean> {
  const [row] = await tx.$queryRaw<{ isOver: boolean }[]>`
    WITH cancelled AS (
      UPDATE runtime_operations SET status = 'completed', completed_at = ${now.toISOString()}::timestamptz,
        lease_token = NULL, lease_expires_at = NULL
      WHERE subject_id = ${recordingId} AND kind = 'recording.process' AND status = 'pending' AND ${isUnleased}
      RETURNING 1
    )
    SELECT EXISTS (SELECT FROM cancelled) OR NOT EXISTS (
      SELECT FROM runtime_operations
      WHERE subject_id = ${recordingId} AND kind = 'recording.process' AND status = 'pending'
    ) AS "isOver"`;
  return row?.isOver === true;
}

/** Call it in the transaction that settles the deletion. */
export async function deleteRecording(tx: TypedSql, recordingId: string): Promise<void> {
  await tx.$executeRaw`DELETE FROM recordings WHERE id = ${recordingId} AND deleted_at IS NOT NULL`;
}
