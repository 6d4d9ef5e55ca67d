import type { Database, TypedSql } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { endSessionsWhere } from '../participants/participant-cleanup.js';
import { writeSessionsEnded } from './ended-sessions.js';
import { SUBJECT_COLUMNS, toSubject, type Subject, type SubjectRow } from './held-session.js';

export interface LostSessionLimits {
  /** How long a session may be without a connection. */
  graceMs: number;
  /** An instance that has not told of itself for so long is dead. */
  instanceDeadMs: number;
  /** Sessions of one sweep. */
  limit: number;
}

export interface SweptSessions {
  ended: { sessionId: string; roomId: string }[];
  /** The rooms that they were in, each once. */
  roomIds: string[];
  deliveries: WakeableDelivery[];
}

/**
 * Ends sessions (`connection_lost`) whose grace is over: counted from when their connection was lost, or, when the
 * instance that held it died, from its last heartbeat. Each ends once, whoever comes first: another sweep, the
 * participant that comes back, or its removal. What is being removed and what is in a room that ends is left to that
 * clean-up, which ends it for its own reason.
 */
export async function sweepLostSessions(
  database: Database,
  limits: LostSessionLimits,
  now: Date,
): Promise<SweptSessions> {
  const swept: SweptSessions = { ended: [], roomIds: [], deliveries: [] };
  const byRoom = new Map<string, LostSession[]>();
  for (const lost of await findLostSessions(database.hot, limits)) {
    const { id } = lost.subject.room;
    byRoom.set(id, [...(byRoom.get(id) ?? []), lost]);
  }
  for (const [roomId, lost] of byRoom) {
    const { sessionIds, deliveries } = await endLost(database, lost, now);
    if (sessionIds.length === 0) continue;
    swept.roomIds.push(roomId);
    swept.ended.push(...sessionIds.map((sessionId) => ({ sessionId, roomId })));
    swept.deliveries.push(...deliveries);
  }
  return swept;
}

interface LostSession {
  subject: Subject;
  connection: number;
}

async function findLostSessions(
  db: TypedSql,
  { graceMs, instanceDeadMs, limit }: LostSessionLimits,
): Promise<LostSession[]> {
  const over = Prisma.sql`now() - ${graceMs}::int * interval '1 millisecond'`;
  const rows = await db.$queryRaw<(SubjectRow & { connection: number })[]>`
    WITH RECURSIVE holders AS (
      -- Each instance that live sessions name: hops through the index instead of reading all of it.
      (SELECT instance_id FROM participant_sessions WHERE ended_at IS NULL AND instance_id IS NOT NULL
        ORDER BY instance_id LIMIT 1)
      UNION ALL
      SELECT (SELECT s.instance_id FROM participant_sessions s
        WHERE s.ended_at IS NULL AND s.instance_id > holders.instance_id ORDER BY s.instance_id LIMIT 1)
      FROM holders WHERE holders.instance_id IS NOT NULL
    ), dead AS (
      SELECT holders.instance_id, i.heartbeat_at
      FROM holders LEFT JOIN signaling_instances i ON i.id = holders.instance_id
      WHERE holders.instance_id IS NOT NULL AND (i.id IS NULL OR i.heartbeat_at
        <= now() - greatest(${graceMs}::int, ${instanceDeadMs}::int) * interval '1 millisecond')
    ), s AS (
      SELECT * FROM participant_sessions WHERE ended_at IS NULL AND disconnected_at <= ${over}
      UNION ALL
      SELECT held.* FROM dead JOIN participant_sessions held
        ON held.instance_id = dead.instance_id AND held.ended_at IS NULL AND held.disconnected_at IS NULL
      -- Of an instance without a row nothing is known but that the session began.
      WHERE dead.heartbeat_at IS NOT NULL OR held.started_at <= ${over}
      UNION ALL
      SELECT * FROM participant_sessions
      WHERE ended_at IS NULL AND instance_id IS NULL AND disconnected_at IS NULL AND started_at <= ${over}
    )
    SELECT ${SUBJECT_COLUMNS}, s.connection
    FROM s
    JOIN participants ON participants.id = s.participant_id AND participants.removed_at IS NULL
    JOIN rooms ON rooms.id = s.room_id AND rooms.status IN ('created', 'active')
    JOIN environments ON environments.id = s.environment_id
    ORDER BY s.room_id LIMIT ${limit}`;
  return rows.map((row) => ({ subject: toSubject(row), connection: row.connection }));
}

/** Those of one room, in one transaction. */
async function endLost(
  database: Database,
  lost: readonly LostSession[],
  now: Date,
): Promise<{ sessionIds: string[]; deliveries: WakeableDelivery[] }> {
  const [first] = lost;
  if (first === undefined) return { sessionIds: [], deliveries: [] };
  const { tenant, room } = first.subject;
  return database.transaction(async (tx) => {
    // Whoever is locked is just being dealt with, by another sweep or by itself.
    const locked = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM participants WHERE id = ANY(${lost.map(({ subject }) => subject.participant.id)}::text[])
      ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`;
    // One that was resumed meanwhile has another connection.
    const which = Prisma.sql`(id, connection) IN (
      SELECT * FROM unnest(${lost.map(({ subject }) => subject.sessionId)}::text[],
        ${lost.map(({ connection }) => connection)}::int[])
    )`;
    const participantIds = locked.map(({ id }) => id);
    const ended = await endSessionsWhere(tx, participantIds, which, 'connection_lost', now);
    return {
      sessionIds: ended.map(({ sessionId }) => sessionId),
      deliveries: await writeSessionsEnded(tx, tenant, room, ended, 'connection_lost', now),
    };
  });
}
