import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { endSessions } from './session-ends.js';
import type { HeldSession } from './session.js';

interface LostSessionLimits {
  graceMs: number;
  /** Age of the last heartbeat from which an instance counts as dead. */
  instanceDeadMs: number;
  limit: number;
  /** Asked once the sessions are found. Without it they are ended in any case. */
  mayEnd?: () => boolean;
}

/**
 * Ends sessions (`connection_lost`) whose grace period is over. The grace period starts when the connection was lost,
 * or, when the instance that held it died, with its last heartbeat. Sessions that are being removed, and sessions of a
 * room that ends, are left to that clean-up, which ends them for its own reason. A room that fails delays no other one.
 */
export async function sweepLostSessions(database: Database, limits: LostSessionLimits, now: Date) {
  const swept = {
    ended: [] as { sessionId: string; roomId: string }[],
    /** Without duplicates, with their versions after the sweep. */
    rooms: [] as { roomId: string; version: number }[],
    deliveries: [] as DueEndpoint[],
    /** Rooms that another transaction keeps locked, for example. */
    failed: [] as { roomId: string; error: unknown }[],
  };
  const lost = await findLostSessions(database.sql, limits);
  if (limits.mayEnd?.() === false) return swept;
  for (const roomId of new Set(lost.map((session) => session.roomId))) {
    const held = lost.filter((session) => session.roomId === roomId);
    try {
      // Skips locked participants: another sweep or their own connection is already handling them.
      const { ended, deliveries } = await endSessions(database, roomId, held, 'connection_lost', now, 'skip');
      const [first] = ended;
      if (first === undefined) continue;
      swept.rooms.push({ roomId, version: first.version });
      swept.ended.push(...ended.map(({ sessionId }) => ({ sessionId, roomId })));
      swept.deliveries.push(...deliveries);
    } catch (error) {
      swept.failed.push({ roomId, error });
    }
  }
  return swept;
}

function findLostSessions(db: TypedSql, limits: LostSessionLimits): PromiseLike<(HeldSession & { roomId: string })[]> {
  const { graceMs, instanceDeadMs, limit } = limits;
  const over = Prisma.sql`now() - ${graceMs}::int * interval '1 millisecond'`;
  const dead = Prisma.sql`
    i.heartbeat_at <= now() - greatest(${graceMs}::int, ${instanceDeadMs}::int) * interval '1 millisecond'`;
  return db.$queryRaw`
    WITH RECURSIVE holders AS (
      -- The instances that hold live sessions. Jumps through the index from one to the next, instead of reading it all.
      (SELECT instance_id FROM participant_sessions WHERE ended_at IS NULL AND instance_id IS NOT NULL
        ORDER BY instance_id LIMIT 1)
      UNION ALL
      SELECT (SELECT s.instance_id FROM participant_sessions s
        WHERE s.ended_at IS NULL AND s.instance_id > holders.instance_id ORDER BY s.instance_id LIMIT 1)
      FROM holders WHERE holders.instance_id IS NOT NULL
    ), dead AS (
      -- Instances with a heartbeat that is too old, or without a row.
      SELECT holders.instance_id, i.heartbeat_at
      FROM holders LEFT JOIN signaling_instances i ON i.id = holders.instance_id
      WHERE holders.instance_id IS NOT NULL AND (i.id IS NULL OR ${dead})
    ), s AS (
      SELECT * FROM participant_sessions
      WHERE ended_at IS NULL AND disconnected_at <= ${over}
      UNION ALL
      SELECT held.* FROM dead JOIN participant_sessions held
        ON held.instance_id = dead.instance_id AND held.ended_at IS NULL AND held.disconnected_at IS NULL
      -- An instance without a row has no known heartbeat, so the grace period starts with the session.
      WHERE dead.heartbeat_at IS NOT NULL OR held.started_at <= ${over}
      UNION ALL
      SELECT * FROM participant_sessions
      WHERE ended_at IS NULL AND instance_id IS NULL AND disconnected_at IS NULL AND started_at <= ${over}
    )
    SELECT s.id AS "sessionId", s.connection, s.room_id AS "roomId"
    FROM s
    JOIN participants ON participants.id = s.participant_id AND participants.removed_at IS NULL
    JOIN rooms ON rooms.id = s.room_id AND ${isRoomOpen}
    ORDER BY s.room_id LIMIT ${limit}`;
}
