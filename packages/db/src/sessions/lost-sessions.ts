import type { Database, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { endSessions } from './session-ends.js';
import type { HeldSession } from './session.js';
import { bumpRooms } from './session.sql.js';

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
  return db.$queryRaw`
    ${lost(limits)}
    SELECT s.id AS "sessionId", s.connection, s.room_id AS "roomId"
    FROM ${openSessions}
    ORDER BY s.room_id LIMIT ${limits.limit}`;
}

/** A session without a gateway, whose client keeps no connection and so cannot resume it by itself. */
export interface OrphanedSession extends HeldSession {
  roomId: string;
  participantId: string;
  environmentId: string;
  resumeSecretHash: Uint8Array;
}

/**
 * Finds sessions of encoders (`media.whip`) whose gateway drains or is dead. Gateways that look at the same time begin
 * with different sessions.
 */
export function findOrphanedSessions(
  db: TypedSql,
  instanceId: string,
  { instanceDeadMs, limit }: Pick<LostSessionLimits, 'instanceDeadMs' | 'limit'>,
): PromiseLike<OrphanedSession[]> {
  return db.$queryRaw`
    ${lost({ graceMs: 0, instanceDeadMs })}
    SELECT s.id AS "sessionId", s.connection, s.room_id AS "roomId", s.participant_id AS "participantId",
      s.environment_id AS "environmentId", s.resume_secret_hash AS "resumeSecretHash"
    FROM ${openSessions}
    WHERE jsonb_typeof(s.media->'whip') = 'object' AND s.resume_secret_hash IS NOT NULL
    ORDER BY md5(s.id || ${instanceId}) LIMIT ${limit}`;
}

/** Lost sessions that no removal and no end of a room handles. */
const openSessions = Prisma.sql`s
    JOIN participants ON participants.id = s.participant_id AND participants.removed_at IS NULL
    JOIN rooms ON rooms.id = s.room_id AND ${isRoomOpen}`;

/** The CTE `s`: the live sessions that have had no gateway for the grace period. */
function lost({ graceMs, instanceDeadMs }: Pick<LostSessionLimits, 'graceMs' | 'instanceDeadMs'>): Prisma.Sql {
  const over = Prisma.sql`now() - ${graceMs}::int * interval '1 millisecond'`;
  const dead = Prisma.sql`
    i.heartbeat_at <= now() - greatest(${graceMs}::int, ${instanceDeadMs}::int) * interval '1 millisecond'`;
  return Prisma.sql`
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
    )`;
}

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
