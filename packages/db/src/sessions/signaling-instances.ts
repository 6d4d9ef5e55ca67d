import type { TypedSql } from '../client/database.js';
import type { HeldSession } from './session.js';

/** A signaling process says that it lives. Repeat it every two seconds. */
export async function beat(db: TypedSql, instanceId: string): Promise<void> {
  await db.$queryRaw`
    INSERT INTO signaling_instances (id) VALUES (${instanceId})
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()`;
}

/** A signaling process stops: the grace of what it still holds begins now, and nobody waits for it any more. */
export async function removeInstance(db: TypedSql, instanceId: string): Promise<void> {
  await db.$queryRaw`
    WITH held AS (
      UPDATE participant_sessions SET disconnected_at = coalesce(disconnected_at, now())
      WHERE instance_id = ${instanceId} AND ended_at IS NULL AND disconnected_at IS NULL
    )
    DELETE FROM signaling_instances WHERE id = ${instanceId}`;
}

/**
 * Removes the rows of processes that died without saying so, once nothing is left of them.
 * @returns their ids.
 */
export async function deleteDeadInstances(db: TypedSql, instanceDeadMs: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    DELETE FROM signaling_instances i
    WHERE heartbeat_at <= now() - ${instanceDeadMs}::int * interval '1 millisecond'
      AND NOT EXISTS (SELECT 1 FROM participant_sessions s WHERE s.instance_id = i.id AND s.ended_at IS NULL)
    RETURNING i.id`;
  return rows.map(({ id }) => id);
}

/**
 * The live sessions that say that this process has their connection. One that it does not know is a ghost: the answer
 * to the join or the resumption was lost. (One that has just been written may still be on its way to it.)
 */
export async function sessionsHeldBy(
  db: TypedSql,
  instanceId: string,
): Promise<(HeldSession & { roomId: string; participantId: string; startedAt: Date })[]> {
  return db.$queryRaw<(HeldSession & { roomId: string; participantId: string; startedAt: Date })[]>`
    SELECT id AS "sessionId", connection, room_id AS "roomId", participant_id AS "participantId",
      started_at AS "startedAt"
    FROM participant_sessions
    WHERE instance_id = ${instanceId} AND ended_at IS NULL AND disconnected_at IS NULL`;
}

/**
 * Whether a living process still has the connection, or the media handles, of a participant's session. It lets go when
 * it sees that the session is to end, or at the latest when the grace is over.
 */
export async function isParticipantHeld(
  db: TypedSql,
  participantId: string,
  limits: { graceMs: number; instanceDeadMs: number },
): Promise<boolean> {
  const rows = await db.$queryRaw<unknown[]>`
    SELECT 1 FROM participant_sessions s JOIN signaling_instances i ON i.id = s.instance_id
    WHERE s.participant_id = ${participantId} AND s.ended_at IS NULL
      AND (s.disconnected_at IS NULL
        OR s.disconnected_at > now() - ${limits.graceMs}::int * interval '1 millisecond')
      AND i.heartbeat_at > now() - ${limits.instanceDeadMs}::int * interval '1 millisecond'`;
  return rows.length > 0;
}

/** The session of a participant that goes on, if there is one. */
export async function liveSessionOf(db: TypedSql, participantId: string): Promise<string | null> {
  const [row] = await db.$queryRaw<{ id: string }[]>`
    SELECT id FROM participant_sessions WHERE participant_id = ${participantId} AND ended_at IS NULL`;
  return row?.id ?? null;
}
