import type { PaceTimes, Permission, SessionEndReason } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { paced } from './paced.js';
import { readSessions } from './room-changes.js';
import { inRounds } from './rounds.js';
import { END_REASON } from './session.sql.js';
import type { ResumeOutcome, SessionState } from './session.js';
import { bumpRooms, lockClause, type LockSettings } from './versions.sql.js';

export interface ResumeInput {
  sessionId: string;
  /** SHA-256 of the resume secret. */
  resumeSecretHash: Uint8Array;
  instanceId: string;
  /**
   * Limits how often one session may be resumed; without it there is no limit. A batch uses the pace of its first input.
   */
  pace?: PaceTimes;
}

interface Found {
  sessionId: string;
  /** False if another transaction has locked the session: only its id and its room are known then. */
  isLocked: boolean;
  /** Whether nothing prevents the resumption but a lock of the room. */
  isAllowed: boolean;
  /** Null when the session was not resumed. */
  connection: number | null;
  previousInstanceId: string | null;
  projectId: string;
  environmentId: string;
  roomId: string;
  participantId: string;
  permissions: Permission[];
  media: unknown;
  /** Why the session cannot be resumed; null when it is live. */
  endReason: SessionEndReason | null;
  waitMs: number;
}

const NO_PACE: PaceTimes = { intervalMs: 0, aheadMs: 0 };

/**
 * Transfers sessions to new connections, on this or another instance, whether or not the old connections are known to
 * be lost. From then on an old connection cannot write. Of several concurrent resumptions of a session, the last one
 * holds it. A resumption writes no leave or join.
 *
 * One statement writes every outcome: anyone can send a wrong secret, so that case must cost only one index look-up.
 * @returns the outcomes in the order of the inputs. With `skipLocked`, a session is `busy` if another transaction has
 * locked it or its room.
 */
export function resumeSessions(
  database: Database,
  inputs: readonly ResumeInput[],
  settings: LockSettings = {},
): Promise<ResumeOutcome[]> {
  return inRounds(
    inputs,
    ({ sessionId }) => sessionId,
    (round) => resumeRound(database.sql, round, settings),
  );
}

/** @param inputs resumptions of different sessions. */
async function resumeRound(
  db: TypedSql,
  inputs: readonly ResumeInput[],
  settings: LockSettings,
): Promise<ResumeOutcome[]> {
  const bucket = paced(Prisma.sql`s.resumptions_full_at`, inputs[0]?.pace ?? NO_PACE);
  const rows = await db.$queryRaw<Found[]>`
    WITH found AS MATERIALIZED (
      SELECT s.id, s.room_id, input.instance_id
      FROM unnest(${inputs.map(({ sessionId }) => sessionId)}::text[],
        ${inputs.map(({ resumeSecretHash }) => Buffer.from(resumeSecretHash).toString('hex'))}::text[],
        ${inputs.map(({ instanceId }) => instanceId)}::text[]) AS input (id, secret, instance_id)
      JOIN participant_sessions s ON s.id = input.id AND s.resume_secret_hash = decode(input.secret, 'hex')
    ), before AS MATERIALIZED (
      SELECT s.id, s.instance_id, s.participant_id, s.environment_id, s.permissions, s.media, e.project_id, s.room_id,
        found.instance_id AS new_instance_id, ${bucket.waitMs} AS wait_ms, ${bucket.isFree} AS is_free,
        ${END_REASON} AS end_reason
      FROM found JOIN participant_sessions s ON s.id = found.id
      JOIN participants ON participants.id = s.participant_id
      JOIN rooms ON rooms.id = s.room_id
      JOIN environments e ON e.id = s.environment_id
      ORDER BY s.id FOR NO KEY UPDATE OF s ${lockClause(settings)}
    ), ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM before WHERE end_reason IS NULL AND is_free`, settings)},
    resumed AS (
      UPDATE participant_sessions s
      SET connection = s.connection + 1, instance_id = before.new_instance_id, disconnected_at = NULL,
        resumptions_full_at = ${bucket.taken}, version = room.version
      FROM before JOIN room ON room.id = before.room_id
      WHERE s.id = before.id AND before.end_reason IS NULL AND before.is_free AND s.ended_at IS NULL
      RETURNING s.id, s.connection
    )
    SELECT found.id AS "sessionId", before.id IS NOT NULL AS "isLocked", found.room_id AS "roomId", resumed.connection,
      coalesce(before.end_reason IS NULL AND before.is_free, false) AS "isAllowed",
      before.instance_id AS "previousInstanceId", before.project_id AS "projectId",
      before.environment_id AS "environmentId", before.participant_id AS "participantId", before.permissions,
      before.media, before.end_reason AS "endReason", before.wait_ms AS "waitMs"
    FROM found LEFT JOIN before ON before.id = found.id LEFT JOIN resumed ON resumed.id = before.id`;
  const found = new Map(rows.map((row) => [row.sessionId, row]));
  // A statement of its own: the snapshot of the one before is older than its locks.
  const states = await readSessions(
    db,
    rows.filter(({ connection }) => connection !== null).map(({ sessionId }) => sessionId),
  );
  return inputs.map(({ sessionId }) => outcomeOf(found.get(sessionId), states.get(sessionId), settings));
}

function outcomeOf(
  found: Found | undefined,
  state: SessionState | undefined,
  { skipLocked = false }: LockSettings,
): ResumeOutcome {
  if (found === undefined) return { outcome: 'unknown' };
  const { connection, endReason, waitMs, projectId, environmentId, sessionId, isLocked, isAllowed, ...rest } = found;
  if (skipLocked && connection === null && (!isLocked || isAllowed)) return { outcome: 'busy', roomId: rest.roomId };
  if (connection !== null) {
    if (state === undefined) throw new Error(`${sessionId} is gone`);
    return { outcome: 'resumed', connection, tenant: { projectId, environmentId }, ...rest, state };
  }
  if (!isLocked) return { outcome: 'unknown' };
  if (endReason !== null) return { outcome: 'ended', reason: endReason };
  return { outcome: 'too_many', waitMs: Math.max(waitMs, 1) };
}
