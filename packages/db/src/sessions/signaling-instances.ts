import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { HeldSession } from './session.js';
import { bumpRooms } from './session.sql.js';

/** Records a heartbeat of a signaling process. Call it every two seconds. */
export async function beat(db: TypedSql, instanceId: string): Promise<void> {
  await db.$queryRaw`
    INSERT INTO signaling_instances (id) VALUES (${instanceId})
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()`;
}

/**
 * Removes a signaling process that stops. The grace period of the sessions that it still holds begins now, and
 * removals no longer wait for it.
 */
export async function removeInstance(db: TypedSql, instanceId: string): Promise<void> {
  await db.$queryRaw`
    WITH held AS MATERIALIZED (
      SELECT id, room_id FROM participant_sessions
      WHERE instance_id = ${instanceId} AND ended_at IS NULL AND disconnected_at IS NULL
      ORDER BY id FOR NO KEY UPDATE
    ), ${bumpRooms(Prisma.sql`SELECT DISTINCT room_id FROM held`)}, disconnected AS (
      UPDATE participant_sessions s SET disconnected_at = now(), version = room.version
      FROM held JOIN room ON room.id = held.room_id WHERE s.id = held.id
    )
    DELETE FROM signaling_instances WHERE id = ${instanceId}`;
}

/** Removes the rows of dead processes that no longer hold a live session. @returns their ids. */
export async function deleteDeadInstances(db: TypedSql, instanceDeadMs: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    DELETE FROM signaling_instances i
    WHERE heartbeat_at <= now() - ${instanceDeadMs}::int * interval '1 millisecond'
      AND NOT EXISTS (SELECT 1 FROM participant_sessions s WHERE s.instance_id = i.id AND s.ended_at IS NULL)
    RETURNING i.id`;
  return rows.map(({ id }) => id);
}

/**
 * The live sessions whose connection this process holds according to the database. If the process does not know one of
 * them, the response to the join or the resumption was lost, or is still on its way.
 */
export function sessionsHeldBy(
  db: TypedSql,
  instanceId: string,
): PromiseLike<(HeldSession & { roomId: string; startedAt: Date })[]> {
  return db.$queryRaw`
    SELECT id AS "sessionId", connection, room_id AS "roomId", started_at AS "startedAt" FROM participant_sessions
    WHERE instance_id = ${instanceId} AND ended_at IS NULL AND disconnected_at IS NULL`;
}

/**
 * Whether a live process still holds the connection or the media handles of a participant's session. The process
 * releases them when it sees that the session must end, or at the latest when the grace period is over.
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
