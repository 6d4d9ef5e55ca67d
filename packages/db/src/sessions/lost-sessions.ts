import type { Database, TypedSql } from '../client/database.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { Prisma } from '../generated/client.js';
import { endSessionsWhere, type EndedNow } from './session-ends.js';
import { lockParticipants } from '../participants/participant-cleanup.js';
import { isRoomOpen } from '../rooms/room.sql.js';
import { writeSessionsEnded } from './ended-sessions.js';
import { SUBJECT_COLUMNS, toSubject, type Subject, type SubjectRow } from './session.sql.js';

export interface LostSessionLimits {
  /** How long a session may stay without a connection. */
  graceMs: number;
  /** Age of the last heartbeat from which an instance counts as dead. */
  instanceDeadMs: number;
  /** Maximum number of sessions per sweep. */
  limit: number;
  /** Asked once the sessions are found. Without it they are ended in any case. */
  mayEnd?: () => boolean;
}

export interface SweptSessions {
  ended: { sessionId: string; roomId: string }[];
  /** The rooms of the ended sessions, without duplicates, with their versions after the sweep. */
  rooms: { roomId: string; version: number }[];
  deliveries: DueEndpoint[];
}

/**
 * Ends sessions (`connection_lost`) whose grace period is over. The grace period starts when the connection was lost,
 * or, when the instance that held it died, with its last heartbeat. Each session ends once, whichever comes first:
 * another sweep, a resumption, or the participant's removal. Sessions that are being removed, and sessions of a room
 * that ends, are left to that clean-up, which ends them for its own reason.
 */
export async function sweepLostSessions(
  database: Database,
  limits: LostSessionLimits,
  now: Date,
): Promise<SweptSessions> {
  const swept: SweptSessions = { ended: [], rooms: [], deliveries: [] };
  const byRoom = new Map<string, LostSession[]>();
  const found = await findLostSessions(database.sql, limits);
  if (limits.mayEnd?.() === false) return swept;
  for (const lost of found) {
    const { id } = lost.subject.room;
    byRoom.set(id, [...(byRoom.get(id) ?? []), lost]);
  }
  for (const [roomId, lost] of byRoom) {
    const { ended, deliveries } = await endLost(database, lost, now);
    const [first] = ended;
    if (first === undefined) continue;
    swept.rooms.push({ roomId, version: first.version });
    swept.ended.push(...ended.map(({ sessionId }) => ({ sessionId, roomId })));
    swept.deliveries.push(...deliveries);
  }
  return swept;
}

interface LostSession {
  subject: Subject;
  connection: number;
}

async function findLostSessions(db: TypedSql, limits: LostSessionLimits): Promise<LostSession[]> {
  const { graceMs, instanceDeadMs, limit } = limits;
  const over = Prisma.sql`now() - ${graceMs}::int * interval '1 millisecond'`;
  const dead = Prisma.sql`
    i.heartbeat_at <= now() - greatest(${graceMs}::int, ${instanceDeadMs}::int) * interval '1 millisecond'`;
  const rows = await db.$queryRaw<(SubjectRow & { connection: number })[]>`
    WITH RECURSIVE ${deadHolders(dead)}, s AS (
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
    SELECT ${SUBJECT_COLUMNS}, s.connection
    FROM s
    JOIN participants ON participants.id = s.participant_id AND participants.removed_at IS NULL
    JOIN rooms ON rooms.id = s.room_id AND ${isRoomOpen}
    JOIN environments ON environments.id = s.environment_id
    ORDER BY s.room_id LIMIT ${limit}`;
  return rows.map((row) => ({ subject: toSubject(row), connection: row.connection }));
}

/** The CTE `dead`: instances that hold live sessions, and whose heartbeat is too old or that have no row. */
const deadHolders = (isDead: Prisma.Sql): Prisma.Sql => Prisma.sql`
  holders AS (
    -- The instances that hold live sessions. Jumps through the index from one to the next, instead of reading it all.
    (SELECT instance_id FROM participant_sessions WHERE ended_at IS NULL AND instance_id IS NOT NULL
      ORDER BY instance_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.instance_id FROM participant_sessions s
      WHERE s.ended_at IS NULL AND s.instance_id > holders.instance_id ORDER BY s.instance_id LIMIT 1)
    FROM holders WHERE holders.instance_id IS NOT NULL
  ), dead AS (
    SELECT holders.instance_id, i.heartbeat_at
    FROM holders LEFT JOIN signaling_instances i ON i.id = holders.instance_id
    WHERE holders.instance_id IS NOT NULL AND (i.id IS NULL OR ${isDead})
  )`;

/** Ends the lost sessions of one room, in one transaction. */
async function endLost(
  database: Database,
  lost: readonly LostSession[],
  now: Date,
): Promise<{ ended: EndedNow[]; deliveries: DueEndpoint[] }> {
  const [first] = lost;
  if (first === undefined) return { ended: [], deliveries: [] };
  const { tenant, room } = first.subject;
  return database.transaction(async (tx) => {
    // Skips locked participants: another sweep or their own connection is already handling them.
    const theirs = Prisma.sql`id = ANY(${lost.map(({ subject }) => subject.participant.id)}::text[]) ORDER BY id`;
    const locked = await lockParticipants(tx, theirs, Prisma.sql`SKIP LOCKED`);
    // A session that was resumed meanwhile has another connection number.
    const which = Prisma.sql`(id, connection) IN (
      SELECT * FROM unnest(${lost.map(({ subject }) => subject.sessionId)}::text[],
        ${lost.map(({ connection }) => connection)}::int[])
    )`;
    const participantIds = locked.map(({ id }) => id);
    const ended = await endSessionsWhere(tx, participantIds, which, 'connection_lost', now);
    return { ended, deliveries: await writeSessionsEnded(tx, tenant, room, ended, 'connection_lost', now) };
  });
}
