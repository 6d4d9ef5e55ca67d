import type { PaceTimes, SessionEndReason, Tenant } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { bumpRooms, isHeld, lockHeld, END_REASON, paced } from './session.sql.js';
import type { HeldSession, ResumeOutcome, SessionState } from './session.js';
import { readSessions } from './room-changes.js';

export interface DisconnectedSession extends HeldSession {
  /** Where its media is, for the instance that resumes the session; undefined keeps the value. */
  media?: unknown;
}

/**
 * Marks sessions as disconnected, which starts their grace periods. Skips sessions that have ended or that another
 * connection holds.
 * @param held different sessions.
 * @returns the ids of the sessions that had a connection until now.
 */
export async function markDisconnected(database: Database, held: readonly DisconnectedSession[]): Promise<string[]> {
  const ids = held.map(({ sessionId }) => sessionId);
  const rows = await database.sql.$queryRaw<{ id: string; hadConnection: boolean }[]>`
    WITH ${lockHeld(held)},
    ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM held WHERE disconnected_at IS NULL`)}
    UPDATE participant_sessions s
    SET disconnected_at = coalesce(s.disconnected_at, now()),
      version = CASE WHEN held.disconnected_at IS NULL THEN room.version ELSE s.version END,
      media = coalesce(input.media::jsonb, s.media),
      media_node_id = coalesce(input.media::jsonb->>'nodeId', s.media_node_id)
    FROM held JOIN unnest(${ids}::text[], ${held.map(mediaText)}::text[]) AS input (id, media) ON input.id = held.id
    LEFT JOIN room ON room.id = held.room_id
    WHERE s.id = held.id
    RETURNING s.id, held.disconnected_at IS NULL AS "hadConnection"`;
  return rows.filter(({ hadConnection }) => hadConnection).map(({ id }) => id);
}

/**
 * Writes where the media of sessions is. Participants do not see it, so the rooms keep their versions. Skips sessions
 * that have ended or that another connection holds.
 * @param states null for a session whose media is gone.
 */
export async function writeMedia(
  db: TypedSql,
  states: readonly { held: HeldSession; media: unknown }[],
): Promise<void> {
  if (states.length === 0) return;
  const ids = states.map(({ held }) => held.sessionId);
  await db.$executeRaw`
    WITH ${lockHeld(states.map(({ held }) => held))}
    UPDATE participant_sessions s SET media = input.media::jsonb, media_node_id = input.media::jsonb->>'nodeId'
    FROM held JOIN unnest(${ids}::text[], ${states.map(mediaText)}::text[]) AS input (id, media) ON input.id = held.id
    WHERE s.id = held.id`;
}

export interface MediaSessionPlace {
  nodeId: string;
  mediaSession: number;
}

export interface MediaOfSession extends HeldSession {
  roomId: string;
  media: unknown;
}

/** The live session that this secret resumes, with its media. Null for another secret or tenant, and after its end. */
export async function findSessionBySecret(
  db: TypedSql,
  { environmentId }: Tenant,
  { sessionId, resumeSecretHash }: Pick<ResumeInput, 'sessionId' | 'resumeSecretHash'>,
): Promise<MediaOfSession | null> {
  const [found] = await db.$queryRaw<MediaOfSession[]>`
    SELECT s.id AS "sessionId", s.connection, s.room_id AS "roomId", s.media
    FROM participant_sessions s
    JOIN participants ON participants.id = s.participant_id JOIN rooms ON rooms.id = s.room_id
    WHERE s.id = ${sessionId} AND s.resume_secret_hash = ${Buffer.from(resumeSecretHash)}
      AND s.environment_id = ${environmentId} AND ${END_REASON} IS NULL`;
  return found ?? null;
}

/** Where the media of sessions is, ended ones included. Sessions without media are missing. */
export function mediaPlacesOf(db: TypedSql, sessionIds: readonly string[]): PromiseLike<MediaSessionPlace[]> {
  return readMediaPlaces(db, Prisma.sql`id = ANY(${[...sessionIds]}::text[])`);
}

const LATEST_SESSIONS = 100;

/**
 * Where the media of a participant's latest sessions is, ended ones included: a gateway that does not reach PostgreSQL
 * still carries the media of a session that another one has superseded.
 */
export function mediaPlacesOfParticipant(db: TypedSql, participantId: string): PromiseLike<MediaSessionPlace[]> {
  const latest = Prisma.sql`SELECT id FROM participant_sessions WHERE participant_id = ${participantId}
    ORDER BY started_at DESC LIMIT ${LATEST_SESSIONS}`;
  return readMediaPlaces(db, Prisma.sql`id IN (${latest})`);
}

function readMediaPlaces(db: TypedSql, which: Prisma.Sql): PromiseLike<MediaSessionPlace[]> {
  return db.$queryRaw<MediaSessionPlace[]>`
    SELECT media->>'nodeId' AS "nodeId", (media->>'janusSession')::float8 AS "mediaSession"
    FROM participant_sessions
    WHERE ${which} AND media->>'nodeId' IS NOT NULL AND media->>'janusSession' IS NOT NULL`;
}

function mediaText({ media }: { media?: unknown }): string | null {
  return media === undefined || media === null ? null : JSON.stringify(media);
}

/**
 * Records that a session that is being removed, or whose room ends, has no connection and no media handles any more. The
 * clean-up of a removal waits for this. The clean-up of a room does not.
 */
export async function releaseSession(db: TypedSql, held: HeldSession): Promise<boolean> {
  const released = await db.$executeRaw`
    UPDATE participant_sessions s
    SET instance_id = NULL, disconnected_at = coalesce(disconnected_at, now()), media = NULL,
      media_node_id = NULL
    WHERE ${isHeld(held)}`;
  return released > 0;
}

/**
 * Gives the live session of a participant a new version after a change of the participant: every instance reads the
 * session again.
 * @returns the version of its room; null if the participant has no live session.
 */
export async function touchSessions(db: TypedSql, participantId: string): Promise<number | null> {
  const [row] = await db.$queryRaw<{ version: number }[]>`
    WITH held AS MATERIALIZED (
      SELECT id, room_id FROM participant_sessions WHERE participant_id = ${participantId} AND ended_at IS NULL
      FOR NO KEY UPDATE
    ), ${bumpRooms(Prisma.sql`SELECT room_id FROM held`)}
    UPDATE participant_sessions s SET version = room.version
    FROM held JOIN room ON room.id = held.room_id WHERE s.id = held.id
    RETURNING s.version`;
  return row?.version ?? null;
}

export interface MetadataChange {
  held: HeldSession;
  metadata: Record<string, unknown>;
}

/**
 * @param changes of different sessions.
 * @returns the ids of the sessions whose metadata was written. A session is missing if it has ended, if its participant
 *   is being removed, or if another connection holds it.
 */
export async function updateOwnMetadata(
  database: Database,
  roomId: string,
  changes: readonly MetadataChange[],
): Promise<Set<string>> {
  const held = changes.map((change) => change.held);
  const sessionIds = held.map(({ sessionId }) => sessionId);
  const isAllowed = Prisma.sql`s.room_id = ${roomId} AND s.participant_id = ANY(ARRAY(SELECT id FROM person))`;
  const rows = await database.sql.$queryRaw<{ id: string }[]>`
    WITH person AS MATERIALIZED (
      SELECT id FROM participants
      WHERE removed_at IS NULL AND id = ANY(ARRAY(
        SELECT participant_id FROM participant_sessions WHERE id = ANY(${sessionIds}::text[])
      ))
      ORDER BY id FOR NO KEY UPDATE
    ), ${lockHeld(held, isAllowed)}, ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM held`)}, changed AS (
      UPDATE participants p SET metadata = input.metadata::jsonb
      FROM held JOIN unnest(${sessionIds}::text[], ${changes.map(({ metadata }) => JSON.stringify(metadata))}::text[])
        AS input (session_id, metadata) ON input.session_id = held.id
      WHERE p.id = held.participant_id
    )
    UPDATE participant_sessions s SET version = room.version FROM held JOIN room ON room.id = held.room_id
    WHERE s.id = held.id RETURNING s.id`;
  return new Set(rows.map(({ id }) => id));
}

export interface ResumeInput {
  sessionId: string;
  resumeSecretHash: Uint8Array;
  instanceId: string;
  /** Resumes only if this is still the number of the latest connection. */
  connection?: number;
}

type Resumed = Extract<ResumeOutcome, { outcome: 'resumed' }>;
type Found = Omit<Resumed, 'connection' | 'outcome' | 'state' | 'tenant'> & {
  sessionId: string;
  connection: number | null;
  projectId: string;
  environmentId: string;
  endReason: SessionEndReason | null;
  waitMs: number;
};

/**
 * Transfers sessions to new connections, on this or another instance, whether or not the old connections are known to
 * be lost. From then on an old connection cannot write. Of several concurrent resumptions of a session, the last one
 * holds it. A resumption writes no leave or join.
 *
 * One statement writes every outcome: anyone can send a wrong secret, so that case must cost only one index look-up.
 * @param inputs resumptions of different sessions.
 * @param pace limits how often one session may be resumed.
 */
export async function resumeSessions(
  database: Database,
  inputs: readonly ResumeInput[],
  pace: PaceTimes,
): Promise<ResumeOutcome[]> {
  const bucket = paced(Prisma.sql`s.resumptions_full_at`, pace);
  const rows = await database.sql.$queryRaw<Found[]>`
    WITH before AS MATERIALIZED (
      SELECT s.id, s.instance_id, s.participant_id, s.environment_id, s.permissions, s.media, e.project_id, s.room_id,
        input.instance_id AS new_instance_id, ${bucket.waitMs} AS wait_ms, ${bucket.isFree} AS is_free,
        ${END_REASON} AS end_reason
      FROM unnest(${inputs.map(({ sessionId }) => sessionId)}::text[],
        ${inputs.map(({ resumeSecretHash }) => Buffer.from(resumeSecretHash).toString('hex'))}::text[],
        ${inputs.map(({ instanceId }) => instanceId)}::text[],
        ${inputs.map(({ connection }) => connection ?? null)}::int[]) AS input (id, secret, instance_id, connection)
      JOIN participant_sessions s ON s.id = input.id AND s.resume_secret_hash = decode(input.secret, 'hex')
        AND s.connection = coalesce(input.connection, s.connection)
      JOIN participants ON participants.id = s.participant_id
      JOIN rooms ON rooms.id = s.room_id
      JOIN environments e ON e.id = s.environment_id
      ORDER BY s.id FOR NO KEY UPDATE OF s
    ), ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM before WHERE end_reason IS NULL AND is_free`)}, resumed AS (
      UPDATE participant_sessions s
      SET connection = s.connection + 1, instance_id = before.new_instance_id, disconnected_at = NULL,
        resumptions_full_at = ${bucket.taken}, version = room.version
      FROM before JOIN room ON room.id = before.room_id
      WHERE s.id = before.id AND before.end_reason IS NULL AND before.is_free AND s.ended_at IS NULL
      RETURNING s.id, s.connection
    )
    SELECT before.id AS "sessionId", before.room_id AS "roomId", resumed.connection,
      before.instance_id AS "previousInstanceId", before.project_id AS "projectId",
      before.environment_id AS "environmentId", before.participant_id AS "participantId", before.permissions,
      before.media, before.end_reason AS "endReason", before.wait_ms AS "waitMs"
    FROM before LEFT JOIN resumed ON resumed.id = before.id`;
  const found = new Map(rows.map((row) => [row.sessionId, row]));
  // A statement of its own: the snapshot of the one before is older than its locks.
  const states = readSessions(
    database.sql,
    rows.filter(({ connection }) => connection !== null).map(({ sessionId }) => sessionId),
  );
  return inputs.map(({ sessionId }) => outcomeOf(found.get(sessionId), states));
}

/** The latest session of a session that was moved, perhaps several times, with the same secret; null without one. */
export async function findMovedSession(
  db: TypedSql,
  { sessionId, resumeSecretHash }: Pick<ResumeInput, 'sessionId' | 'resumeSecretHash'>,
): Promise<{ sessionId: string; roomId: string } | null> {
  const [found] = await db.$queryRaw<{ sessionId: string; roomId: string }[]>`
    WITH RECURSIVE person AS (
      SELECT participant_id AS id, 0 AS moves FROM participant_sessions WHERE id = ${sessionId}
      UNION ALL
      SELECT p.id, person.moves + 1 FROM participants p JOIN person ON p.moved_from_id = person.id
    )
    SELECT s.id AS "sessionId", s.room_id AS "roomId" FROM participant_sessions s JOIN person ON person.id = s.participant_id
    WHERE s.resume_secret_hash = ${Buffer.from(resumeSecretHash)} AND person.moves > 0
    ORDER BY person.moves DESC LIMIT 1`;
  return found ?? null;
}

function outcomeOf(found: Found | undefined, states: Promise<Map<string, SessionState>>): ResumeOutcome {
  if (found === undefined) return { outcome: 'unknown' };
  const { connection, endReason, waitMs, projectId, environmentId, sessionId, ...rest } = found;
  if (connection !== null) {
    const state = states.then((all) => all.get(sessionId) ?? Promise.reject(new Error(`${sessionId} is gone`)));
    // A caller that has lost the session does not wait for it.
    state.catch(() => undefined);
    return { outcome: 'resumed', connection, tenant: { projectId, environmentId }, ...rest, state };
  }
  if (endReason !== null) return { outcome: 'ended', reason: endReason };
  return { outcome: 'too_many', waitMs: Math.max(waitMs, 1) };
}
