// Deletions that no request asks for: by age, and by the erasure of a participant.

import type { RecordingFile } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { insertOperations, type WakeableOperation } from '../operations/operations.repository.js';

/** Deletions that one statement accepts. */
const BATCH = 100;

/**
 * Recordings of the table `r` during which the participant of the row `p` had a session. A failed one keeps the raw
 * captures of the whole room.
 */
const showsParticipant = Prisma.sql`r.room_id = p.room_id AND r.deleted_at IS NULL
  AND (r.status = 'failed' OR EXISTS (
    SELECT FROM participant_sessions s WHERE s.participant_id = p.id AND s.started_at <= coalesce(r.ended_at, now())
      AND coalesce(s.ended_at, 'infinity') >= r.started_at))`;

/** Whether a recording of the table `r` goes as a whole: a mix cannot be separated, nor can raw captures. */
const isMixed = Prisma.sql`(r.mode <> 'tracks' OR r.participant_id IS NOT DISTINCT FROM p.id OR r.status = 'failed')`;

/** Whether a recording still has something of an erased participant; `x` is a row of `participant_erasures`. */
export const isRecorded = (x: Prisma.Sql): Prisma.Sql => Prisma.sql`EXISTS (
  SELECT FROM participants p JOIN recordings r ON ${showsParticipant}
  WHERE p.id = ${x}.participant_id AND (r.status IN ('recording', 'processing') OR ${isMixed}
    OR r.files @> jsonb_build_array(jsonb_build_object('participantId', p.id))))`;

export interface AcceptedDeletions {
  /** Their ids. */
  recordings: string[];
  operations: WakeableOperation[];
}

async function deleteRecordings(tx: TypedSql, chosen: Prisma.Sql, now: Date): Promise<AcceptedDeletions> {
  const rows = await tx.$queryRaw<{ id: string }[]>`
    UPDATE recordings SET deleted_at = ${now.toISOString()}::timestamptz
    WHERE id IN (${chosen} LIMIT ${BATCH}::int) AND deleted_at IS NULL RETURNING id`;
  const recordings = rows.map(({ id }) => id);
  if (recordings.length === 0) return { recordings, operations: [] };
  const subject = Prisma.sql`subject AS (
      SELECT id, environment_id, room_id, NULL::text AS participant_id, NULL::int AS version
      FROM recordings WHERE id = ANY(${recordings}::text[])
    )`;
  return { recordings, operations: await insertOperations(tx, 'recording.delete', subject, now) };
}

/** Accepts the deletion of recordings that ended before this time. */
export function deleteOldRecordings(tx: TypedSql, endedBefore: Date, now: Date): Promise<AcceptedDeletions> {
  const chosen = Prisma.sql`
    SELECT id FROM recordings
    WHERE status IN ('completed', 'failed') AND deleted_at IS NULL AND ended_at < ${endedBefore.toISOString()}::timestamptz`;
  return deleteRecordings(tx, chosen, now);
}

const erasedWith = (participantId: string | null): Prisma.Sql => Prisma.sql`
  participant_erasures x JOIN participants p ON p.id = x.participant_id
    AND (${participantId}::text IS NULL OR p.id = ${participantId}::text)
  JOIN recordings r ON ${showsParticipant}`;

/**
 * Accepts the deletion of recordings that show an erased participant and cannot do without. One that still runs goes
 * once it has ended.
 * @param participantId null: all erasures
 */
export function deleteErasedRecordings(
  tx: TypedSql,
  participantId: string | null,
  now: Date,
): Promise<AcceptedDeletions> {
  const chosen = Prisma.sql`
    SELECT r.id FROM ${erasedWith(participantId)} WHERE r.status IN ('completed', 'failed') AND ${isMixed}`;
  return deleteRecordings(tx, chosen, now);
}

export interface ErasedFile {
  recordingId: string;
  file: Pick<RecordingFile, 'id' | 'contentType'>;
}

/** The files of tracks of erased participants. */
export function findErasedFiles(db: TypedSql, participantId: string | null): PromiseLike<ErasedFile[]> {
  return db.$queryRaw<ErasedFile[]>`
    SELECT r.id AS "recordingId", jsonb_build_object('id', f -> 'id', 'contentType', f -> 'contentType') AS file
    FROM ${erasedWith(participantId)} CROSS JOIN LATERAL jsonb_array_elements(r.files) f
    WHERE r.status = 'completed' AND NOT ${isMixed} AND f ->> 'participantId' = p.id LIMIT ${BATCH}::int`;
}

export interface RecordingErasure extends AcceptedDeletions {
  files: ErasedFile[];
  /** Recordings that have to end first. */
  later: string[];
}

/** Accepts the deletions that are possible now, and names them. Call it in the transaction that requests the erasure. */
export async function eraseRecordings(tx: TypedSql, participantId: string, now: Date): Promise<RecordingErasure> {
  const deleted = await deleteErasedRecordings(tx, participantId, now);
  const later = await tx.$queryRaw<{ id: string }[]>`
    SELECT DISTINCT r.id FROM ${erasedWith(participantId)} WHERE r.status IN ('recording', 'processing') ORDER BY 1`;
  return { ...deleted, files: await findErasedFiles(tx, participantId), later: later.map(({ id }) => id) };
}

/** Forgets a file, which the store no longer has. */
export async function forgetRecordingFile(db: TypedSql, { recordingId, file }: ErasedFile): Promise<void> {
  await db.$executeRaw`
    UPDATE recordings SET files = (
      SELECT coalesce(jsonb_agg(f), '[]') FROM jsonb_array_elements(files) f WHERE f ->> 'id' <> ${file.id})
    WHERE id = ${recordingId}`;
}
