import type { Permission, SessionEndReason } from '@callplane/core';
import type { Database } from '../client/database.js';
import type { ResumeOutcome } from './session.js';

export interface ResumeInput {
  sessionId: string;
  /** SHA-256 of the resume secret. */
  resumeSecretHash: Uint8Array;
  instanceId: string;
}

interface Resumed {
  connection: number;
  previousInstanceId: string | null;
  projectId: string;
  environmentId: string;
  roomId: string;
  participantId: string;
  permissions: Permission[];
}

/**
 * Another connection takes a session over, here or from another instance, whether or not its old one is known to be
 * lost: from then on the old one writes nothing. Of several at once the last one has it. Nobody leaves or joins by it.
 */
export async function resumeSession(database: Database, input: ResumeInput): Promise<ResumeOutcome> {
  const hash = Uint8Array.from(input.resumeSecretHash);
  const [resumed] = await database.hot.$queryRaw<Resumed[]>`
    WITH before AS (
      SELECT id, instance_id FROM participant_sessions
      WHERE id = ${input.sessionId} AND resume_secret_hash = ${hash} AND ended_at IS NULL
      FOR NO KEY UPDATE
    )
    UPDATE participant_sessions s
    SET connection = s.connection + 1, instance_id = ${input.instanceId}, disconnected_at = NULL
    FROM before, participants p, rooms r, environments e
    WHERE s.id = before.id AND s.ended_at IS NULL AND p.id = s.participant_id AND p.removed_at IS NULL
      AND r.id = s.room_id AND r.status = 'active' AND e.id = s.environment_id
    RETURNING s.connection, before.instance_id AS "previousInstanceId", e.project_id AS "projectId",
      s.environment_id AS "environmentId", s.room_id AS "roomId", s.participant_id AS "participantId", s.permissions`;
  if (resumed === undefined) return refusal(database, input.sessionId, hash);
  const { projectId, environmentId, ...rest } = resumed;
  return { outcome: 'resumed', tenant: { projectId, environmentId }, ...rest };
}

async function refusal(database: Database, sessionId: string, hash: Uint8Array): Promise<ResumeOutcome> {
  const [row] = await database.hot.$queryRaw<{ reason: SessionEndReason | null }[]>`
    SELECT CASE WHEN s.end_reason IS NOT NULL THEN s.end_reason WHEN p.removed_at IS NOT NULL THEN 'removed'
      WHEN r.status <> 'active' THEN 'room_ended' END AS reason
    FROM participant_sessions s
    JOIN participants p ON p.id = s.participant_id
    JOIN rooms r ON r.id = s.room_id
    WHERE s.id = ${sessionId} AND s.resume_secret_hash = ${hash}`;
  return row?.reason == null ? { outcome: 'unknown' } : { outcome: 'ended', reason: row.reason };
}
