import {
  isOpen,
  newId,
  newRecording,
  recordingEvent,
  type NewRecording,
  type RecordingInput,
  type RecordingState,
  type RecordingStatus,
  type RoomState,
  type Tenant,
} from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { findRoom } from '../rooms/rooms.repository.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { RECORDING_COLUMNS, WAITING } from './recording.sql.js';

/** The periodic task of which a running recorder holds the lease. */
export const RECORDER_TASK = 'longest durations';
/** Without a pass of its agent in this time, a media server does not record. */
export const CAPTURE_SILENT_SECONDS = 30;

export type RecordingRefusal =
  | 'room_not_found'
  | 'room_ended'
  | 'room_encrypted'
  | 'participant_not_found'
  | 'active'
  | 'no_recorder'
  | 'no_agent';

/**
 * Starts a recording, and writes its event and the spans of the tracks that are published now. It begins by PostgreSQL's
 * clock, as its captures do: a wrong clock of an app would cut them.
 * @param tx a transaction
 */
export async function startRecording(
  tx: TypedSql,
  tenant: Tenant,
  roomId: string,
  recording: NewRecording,
): Promise<RecordingRefusal | { startedAt: Date; deliveries: DueEndpoint[] }> {
  // A gateway that publishes tracks of one of these sessions has committed them now, or sees the recording.
  await tx.$queryRaw`
    SELECT 1 FROM participant_sessions s WHERE room_id = ${roomId} AND ended_at IS NULL ORDER BY id FOR SHARE`;
  const room = await findRoom(tx, tenant, roomId, Prisma.sql`FOR NO KEY UPDATE`);
  if (room === null) return 'room_not_found';
  if (!isOpen(room.status)) return 'room_ended';
  if (room.encryption === 'required') return 'room_encrypted';
  const lack = await lackOf(tx, roomId);
  if (lack !== null) return lack;
  if (await isSecondComposite(tx, roomId, recording)) return 'active';
  const startedAt = await insertRecording(tx, tenant, roomId, recording);
  if (startedAt === null) return 'participant_not_found';
  await tx.$executeRaw`
    INSERT INTO recording_spans (room_id, participant_id, session_id, track_id, kind, source, feed_id, mid, muted,
      started_at)
    SELECT s.room_id, s.participant_id, s.id, t.track_id, t.kind, t.source, t.feed_id, t.mid, t.muted,
      ${startedAt.toISOString()}::timestamptz
    FROM participant_sessions s JOIN session_tracks t ON t.session_id = s.id
    WHERE s.room_id = ${roomId} AND s.ended_at IS NULL AND NOT EXISTS (
      SELECT FROM recording_spans p WHERE p.session_id = s.id AND p.track_id = t.track_id AND p.ended_at IS NULL)`;
  return { startedAt, deliveries: await announceRecording(tx, tenant, room, recording, startedAt) };
}

/**
 * Starts the recording that the option of a room asks for, without a request. Nothing is published yet. Without a
 * recorder or an agent it waits for one, because the join must not fail.
 * @param tx the transaction of the first join
 */
export async function recordFromStart(
  tx: TypedSql,
  tenant: Tenant,
  room: RoomState & { record: RecordingInput },
): Promise<DueEndpoint[]> {
  const recording = newRecording(room.record, newId('recording'));
  if (await isSecondComposite(tx, room.id, recording)) return [];
  const startedAt = await insertRecording(tx, tenant, room.id, recording);
  return startedAt === null ? [] : announceRecording(tx, tenant, room, recording, startedAt);
}

/** In a transaction that has locked the room, which makes this a limit. */
async function isSecondComposite(tx: TypedSql, roomId: string, { mode }: NewRecording): Promise<boolean> {
  const running = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM recordings WHERE room_id = ${roomId} AND status = 'recording' AND mode = 'composite'`;
  return mode === 'composite' && running.length > 0;
}

/** @returns its begin; null if the room has no such participant */
async function insertRecording(
  tx: TypedSql,
  { environmentId }: Tenant,
  roomId: string,
  { id, participantId, mode, audioOnly, layout, metadata, maxDurationSeconds }: NewRecording,
): Promise<Date | null> {
  const [inserted] = await tx.$queryRaw<{ startedAt: Date }[]>`
    INSERT INTO recordings (id, environment_id, room_id, participant_id, mode, audio_only, layout, metadata,
      max_duration_seconds, status, started_at)
    SELECT ${id}, ${environmentId}, ${roomId}, ${participantId}::text, ${mode}, ${audioOnly}, ${layout}::text,
      ${JSON.stringify(metadata)}::jsonb, ${maxDurationSeconds}::int, 'recording', now()
    WHERE ${participantId}::text IS NULL
      OR EXISTS (SELECT FROM participants WHERE id = ${participantId}::text AND room_id = ${roomId})
    RETURNING started_at AS "startedAt"`;
  return inserted?.startedAt ?? null;
}

async function announceRecording(
  tx: TypedSql,
  tenant: Tenant,
  room: RoomState,
  recording: NewRecording,
  startedAt: Date,
): Promise<DueEndpoint[]> {
  const subject = { tenant, room: { ...room, ...(await followRecordings(tx, room.id)) }, now: startedAt };
  const state = stateAtStart(tenant, room.id, recording, startedAt);
  return (await writeEvents(tx, [recordingEvent('recording.started', subject, state)])).deliveries;
}

/**
 * Lets the participants know whether their room is recorded. Call it after each start and end of a recording, in a
 * transaction that has locked the room.
 * @returns undefined if nothing has changed for them
 */
export async function followRecordings(
  tx: TypedSql,
  roomId: string,
): Promise<Pick<RoomState, 'recordingSince'> | undefined> {
  const [changed] = await tx.$queryRaw<Pick<RoomState, 'recordingSince'>[]>`
    UPDATE rooms SET recording_since = running.since, version = version + 1
    FROM (SELECT min(started_at) AS since FROM recordings WHERE room_id = ${roomId} AND status = 'recording') running
    WHERE rooms.id = ${roomId} AND (rooms.recording_since IS NULL) <> (running.since IS NULL)
    RETURNING rooms.recording_since AS "recordingSince"`;
  return changed;
}

export function stateAtStart(
  { environmentId }: Tenant,
  roomId: string,
  recording: NewRecording,
  startedAt: Date,
): RecordingState {
  return {
    ...recording,
    startedAt,
    environmentId,
    roomId,
    status: 'recording',
    progress: 0,
    queuePosition: null,
    lastError: null,
    endedAt: null,
    completedAt: null,
    gaps: [],
    files: [],
  };
}

const hasRecorder = Prisma.sql`
  EXISTS (SELECT FROM sweeps WHERE name = ${`recorder ${RECORDER_TASK}`} AND held_until > now())`;
/** Whether a media server records; the table has the name `n`. */
export const records = Prisma.sql`n.captured_at > now() - ${CAPTURE_SILENT_SECONDS}::int * interval '1 second'`;

/** A recording needs a recorder, and the agent of each media server of the room; any agent without such a room. */
export async function lackOf(db: TypedSql, roomId: string | null): Promise<'no_recorder' | 'no_agent' | null> {
  const [row] = await db.$queryRaw<[{ hasRecorder: boolean; hasAgent: boolean }]>`
    SELECT ${hasRecorder} AS "hasRecorder", EXISTS (
      SELECT FROM media_nodes n
      WHERE n.id = coalesce((SELECT media_node_id FROM rooms WHERE rooms.id = ${roomId}::text), n.id) AND ${records}
    ) AND NOT EXISTS (
      SELECT FROM rooms, unnest(further_node_ids) AS further (id) WHERE rooms.id = ${roomId}::text
        AND NOT EXISTS (SELECT FROM media_nodes n WHERE n.id = further.id AND ${records})
    ) AS "hasAgent"`;
  if (!row.hasRecorder) return 'no_recorder';
  return row.hasAgent ? null : 'no_agent';
}

export interface RecordingFacts {
  /** Whether a recorder with a store and ffmpeg runs. */
  hasRecorder: boolean;
  /** Media servers that record, and the ones that have stopped to. */
  recording: number;
  silent: number;
}

/** For a diagnosis of the deployment. */
export async function readRecordingFacts(db: TypedSql): Promise<RecordingFacts> {
  const [facts] = await db.$queryRaw<[RecordingFacts]>`
    SELECT ${hasRecorder} AS "hasRecorder", count(*) FILTER (WHERE ${records})::int AS recording,
      count(*) FILTER (WHERE NOT (${records}))::int AS silent
    FROM media_nodes n WHERE captured_at IS NOT NULL`;
  return facts;
}

export async function findRecording(
  db: TypedSql,
  { environmentId }: Tenant,
  recordingId: string,
): Promise<RecordingState | null> {
  const [row] = await db.$queryRaw<RecordingState[]>`
    SELECT ${RECORDING_COLUMNS} FROM recordings ${WAITING}
    WHERE recordings.id = ${recordingId} AND environment_id = ${environmentId} AND deleted_at IS NULL`;
  return row ?? null;
}

export interface RecordingFilter {
  roomId: string | null;
  status: RecordingStatus | null;
  beforeId: string | null;
  limit: number;
}

/** Newest first. */
export function listRecordings(
  db: TypedSql,
  { environmentId }: Tenant,
  { roomId, status, beforeId, limit }: RecordingFilter,
): PromiseLike<RecordingState[]> {
  const filters = [
    ...(roomId === null ? [] : [Prisma.sql`AND recordings.room_id = ${roomId}`]),
    ...(status === null ? [] : [Prisma.sql`AND recordings.status = ${status}`]),
    ...(beforeId === null ? [] : [Prisma.sql`AND recordings.id < ${beforeId}`]),
  ];
  return db.$queryRaw<RecordingState[]>`
    SELECT ${RECORDING_COLUMNS} FROM recordings ${WAITING}
    WHERE environment_id = ${environmentId} AND deleted_at IS NULL ${filters.length === 0 ? Prisma.empty : Prisma.join(filters, ' ')}
    ORDER BY recordings.id DESC LIMIT ${limit}`;
}
