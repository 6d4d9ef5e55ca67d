import { recordingEvent, type RecordingState, type Tenant } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import {
  acceptAgain,
  accepted,
  insertOperations,
  type AcceptedOperation,
  type WakeableOperation,
} from '../operations/operations.repository.js';
import { findRoom } from '../rooms/rooms.repository.js';
import { addRecordingUsage } from '../usage/usage.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { STORED_COLUMNS } from './recording.sql.js';
import { followRecordings } from './recordings.repository.js';

export interface StoppedRecordings {
  recordings: RecordingState[];
  /** The operations that make their files. */
  operations: WakeableOperation[];
  deliveries: DueEndpoint[];
}

/**
 * Ends the running recordings of a room by PostgreSQL's clock, with their events and the operations that make their
 * files. A recording that has ended stays as it is.
 * @param tx a transaction
 * @param recordingId null: all of the room
 */
export async function stopRecordings(
  tx: TypedSql,
  tenant: Tenant,
  roomId: string,
  recordingId: string | null,
  now: Date,
): Promise<StoppedRecordings> {
  // The lock orders this with other starts and stops, so that `recording_since` follows all of them.
  const locked = await findRoom(tx, tenant, roomId, Prisma.sql`FOR NO KEY UPDATE`);
  if (locked === null) throw new Error(`no room ${roomId}`);
  const which = recordingId === null ? Prisma.empty : Prisma.sql`AND recordings.id = ${recordingId}`;
  const rows = await tx.$queryRaw<RecordingState[]>`
    UPDATE recordings SET status = 'processing', ended_at = greatest(started_at,
      least(now(), started_at + max_duration_seconds * interval '1 second'))
    WHERE room_id = ${roomId} AND environment_id = ${tenant.environmentId} AND status = 'recording' ${which}
    RETURNING ${STORED_COLUMNS}, NULL::int AS "queuePosition"`;
  if (rows.length === 0) return { recordings: [], operations: [], deliveries: [] };
  const subjects = Prisma.sql`subject AS (
      SELECT id, environment_id, room_id, NULL::text AS participant_id, NULL::int AS version
      FROM recordings WHERE id = ANY(${rows.map(({ id }) => id)}::text[])
    )`;
  const operations = await insertOperations(tx, 'recording.process', subjects, now, tenant.traceparent);
  const room = { ...locked, ...(await followRecordings(tx, roomId)) };
  const events = rows.map((row) => recordingEvent('recording.stopped', { tenant, room, now }, row));
  const { deliveries } = await writeEvents(tx, events);
  const recordedMs = rows.reduce((sum, { startedAt, endedAt }) => sum + Number(endedAt) - Number(startedAt), 0);
  await addRecordingUsage(tx, tenant, { recordedMs }, now);
  return { recordings: rows, operations, deliveries };
}

/** Recordings that have reached their longest duration. */
export function findOverdueRecordings(
  db: TypedSql,
  limit: number,
): PromiseLike<(Tenant & { recordingId: string; roomId: string })[]> {
  return db.$queryRaw`
    SELECT recordings.id AS "recordingId", recordings.room_id AS "roomId", environments.id AS "environmentId",
      environments.project_id AS "projectId"
    FROM recordings JOIN environments ON environments.id = recordings.environment_id
    WHERE recordings.status = 'recording'
      AND recordings.started_at + recordings.max_duration_seconds * interval '1 second' <= now()
    LIMIT ${limit}`;
}

/**
 * Accepts the deletion of a recording that has ended: from this commit on no request finds it.
 * @returns null if there is no such recording; `running` if it has not ended.
 */
export async function acceptRecordingDeletion(
  database: Database,
  tenant: Tenant,
  recordingId: string,
  now: Date,
): Promise<(AcceptedOperation & { roomId: string }) | 'running' | null> {
  const { environmentId } = tenant;
  const subject = Prisma.sql`subject AS (
      UPDATE recordings SET deleted_at = ${now.toISOString()}::timestamptz
      WHERE id = ${recordingId} AND environment_id = ${environmentId} AND deleted_at IS NULL AND status <> 'recording'
      RETURNING id, environment_id, room_id, NULL::text AS participant_id, NULL::int AS version
    )`;
  const [created] = await insertOperations(database.sql, 'recording.delete', subject, now, tenant.traceparent);
  if (created !== undefined) return { ...accepted(created, null), roomId: created.roomId };
  const [found] = await database.sql.$queryRaw<{ roomId: string; isRunning: boolean }[]>`
    SELECT room_id AS "roomId", status = 'recording' AS "isRunning" FROM recordings
    WHERE id = ${recordingId} AND environment_id = ${environmentId}`;
  if (found === undefined) return null;
  if (found.isRunning) return 'running';
  const { roomId } = found;
  const again = await acceptAgain(database, {
    environmentId,
    roomId,
    subjectId: recordingId,
    kind: 'recording.delete',
  });
  return again === null ? null : { ...again, roomId };
}
