import type { PaceTimes, SessionEndReason } from '@callplane/core';
import type { Database } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { readSessions } from './room-changes.js';
import { bumpRooms, END_REASON, paced } from './session.sql.js';
import type { ResumeOutcome, SessionState } from './session.js';

export interface ResumeInput {
  sessionId: string;
  resumeSecretHash: Uint8Array;
  instanceId: string;
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
        ${inputs.map(({ instanceId }) => instanceId)}::text[]) AS input (id, secret, instance_id)
      JOIN participant_sessions s ON s.id = input.id AND s.resume_secret_hash = decode(input.secret, 'hex')
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
