import { ATTEMPTS_PER_RUN } from '@callplane/core';
import { matchesFilter } from '../events/event-filter.js';
import { Prisma } from '../generated/client.js';
import type { Database } from '../client/database.js';
import { isOutOfTime } from '../client/unavailable.js';

/** A property that holds at every commit. `rtc doctor --deep` searches for rows that break it. */
export interface Invariant {
  /** Names the invariant in output and in docs/guarantees.md. */
  readonly name: string;
  readonly sentence: string;
  /** {@link Invariant.broken} looks at the newest rows of this table, by id. */
  readonly subject: 'rooms' | 'participants' | 'operations' | 'events' | 'deliveries';
  /**
   * The ids of rows that break the invariant. The CTE `newest (id)` has the rows to look at. Every further table is read
   * through an index by these ids.
   */
  readonly broken: Prisma.Sql;
}

/** How long after its start a lease may end, with room for a slow commit. Deliveries and operations: 120 s. */
const LEASE_SECONDS_MAX = 180;

export const INVARIANTS: readonly Invariant[] = [
  {
    name: 'events-numbered',
    sentence: 'The events of a room are numbered without gaps up to the number in its row.',
    subject: 'rooms',
    // Retention deletes events one by one, so only the events of the latest day are counted.
    broken: Prisma.sql`
      SELECT r.id FROM newest JOIN rooms r ON r.id = newest.id
      CROSS JOIN LATERAL (
        SELECT count(*) AS count, min(v.sequence) AS first, max(v.sequence) AS last
        FROM events v WHERE v.room_id = r.id AND v.created_at > now() - interval '1 day'
      ) e
      WHERE e.count > 0 AND (e.last <> r.last_sequence OR e.last - e.first + 1 <> e.count)`,
  },
  {
    name: 'ended-rooms-empty',
    sentence: 'A room that has ended has no live session, no published track, and no running recording.',
    subject: 'rooms',
    broken: Prisma.sql`
      SELECT r.id FROM newest JOIN rooms r ON r.id = newest.id
      WHERE r.status = 'ended' AND (EXISTS (
        SELECT FROM participant_sessions s LEFT JOIN session_tracks t ON t.session_id = s.id
        WHERE s.room_id = r.id AND (s.ended_at IS NULL OR t.session_id IS NOT NULL))
        OR EXISTS (SELECT FROM recordings c WHERE c.room_id = r.id AND c.status = 'recording'))`,
  },
  {
    name: 'recordings-worked-on',
    sentence:
      'A room says whether it is recorded. A recording that has ended has an operation that is pending, or has its outcome.',
    subject: 'rooms',
    broken: Prisma.sql`
      SELECT r.id FROM newest JOIN rooms r ON r.id = newest.id
      CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE c.status = 'recording') AS running,
          count(*) FILTER (WHERE c.status <> 'recording' AND c.deleted_at IS NULL AND NOT EXISTS (
            SELECT FROM runtime_operations o WHERE o.subject_id = c.id AND o.kind = 'recording.process'
              AND o.status IN (CASE c.status WHEN 'completed' THEN 'completed' ELSE 'pending' END,
                CASE c.status WHEN 'failed' THEN 'failed' END))) AS lost
        FROM recordings c WHERE c.room_id = r.id
      ) recordings
      WHERE (r.recording_since IS NOT NULL) <> (running > 0) OR lost > 0`,
  },
  {
    name: 'ending-rooms-worked-on',
    sentence: 'A room that ends has an operation that is pending or has failed; an ended room has a completed one.',
    subject: 'rooms',
    broken: Prisma.sql`
      SELECT r.id FROM newest JOIN rooms r ON r.id = newest.id
      WHERE r.status IN ('ending', 'ended') AND NOT EXISTS (
        SELECT FROM runtime_operations o WHERE o.room_id = r.id AND o.kind = 'room.end'
          AND (o.status = 'completed') = (r.status = 'ended'))`,
  },
  {
    name: 'capacity',
    sentence: 'A room has at most as many live sessions as it had places when the latest of them began.',
    subject: 'rooms',
    // A smaller capacity removes no participant, so rooms whose capacity was changed are left out.
    broken: Prisma.sql`
      SELECT r.id FROM newest JOIN rooms r ON r.id = newest.id
      WHERE (SELECT count(*) FROM participant_sessions s WHERE s.room_id = r.id AND s.ended_at IS NULL
          AND NOT s.waiting) > r.max_participants
        AND NOT EXISTS (SELECT FROM events v WHERE v.room_id = r.id AND v.type = 'room.updated')`,
  },
  {
    name: 'sessions-reported-once',
    sentence:
      'A session has exactly one event of its begin, unless it is in the lobby, and one of its end once it has ended.',
    subject: 'rooms',
    // Each room's sessions and events are read once and grouped. The events of a session come with or after its row.
    broken: Prisma.sql`
      SELECT newest.id FROM newest
      CROSS JOIN LATERAL (
        SELECT FROM (
          SELECT s.id AS session_id, true AS is_row, s.waiting, (s.ended_at IS NOT NULL)::int AS ended, 0 AS joined,
            0 AS gone
          FROM participant_sessions s
          WHERE s.room_id = newest.id AND s.started_at > now() - interval '1 day'
          UNION ALL
          SELECT v.body::json -> 'data' ->> 'sessionId', false, false, 0, (v.type = 'participant.joined')::int,
            (v.type = 'participant.left')::int
          FROM events v
          WHERE v.room_id = newest.id AND v.type IN ('participant.joined', 'participant.left')
            AND v.created_at > now() - interval '25 hours'
        ) told
        GROUP BY session_id HAVING bool_or(is_row)
          AND (sum(joined) <> (NOT bool_or(waiting))::int OR sum(gone) <> max(ended))
        LIMIT 1
      ) wrong`,
  },
  {
    name: 'removed-participants-gone',
    sentence: 'A participant whose removal has completed has no live session and no valid token.',
    subject: 'operations',
    broken: Prisma.sql`
      SELECT o.id FROM newest JOIN runtime_operations o ON o.id = newest.id
      -- Counted, because PostgreSQL may hash a whole table for EXISTS behind OR.
      CROSS JOIN LATERAL (
        SELECT (SELECT count(*) FROM participant_sessions s WHERE s.participant_id = o.participant_id AND s.ended_at IS NULL)
          + (SELECT count(*) FROM participant_tokens t WHERE t.participant_id = o.participant_id AND t.revoked_at IS NULL)
          + (SELECT count(*) FROM participants p WHERE p.id = o.participant_id AND p.removed_at IS NULL) AS count
      ) remaining
      WHERE o.kind = 'participant.remove' AND o.status = 'completed' AND remaining.count > 0`,
  },
  {
    name: 'moved-participants-gone',
    sentence: 'A participant that was moved to another room has no live session and no valid token.',
    subject: 'participants',
    broken: Prisma.sql`
      SELECT p.id FROM newest JOIN participants p ON p.id = newest.id
      CROSS JOIN LATERAL (
        SELECT (SELECT count(*) FROM participant_sessions s WHERE s.participant_id = p.moved_from_id AND s.ended_at IS NULL)
          + (SELECT count(*) FROM participant_tokens t WHERE t.participant_id = p.moved_from_id AND t.revoked_at IS NULL)
          AS count
      ) remaining
      WHERE p.moved_from_id IS NOT NULL AND remaining.count > 0`,
  },
  {
    name: 'operations-bounded',
    sentence:
      'A failed operation was refused, or has used all attempts of its run, and names its error; no lease lasts for longer than allowed.',
    subject: 'operations',
    broken: Prisma.sql`
      SELECT o.id FROM newest JOIN runtime_operations o ON o.id = newest.id
      WHERE (o.status = 'failed' AND (o.last_error IS NULL OR (o.run_attempts < ${ATTEMPTS_PER_RUN}::int
          AND o.last_error ->> 'code' IN ('STEP_FAILED', 'LEASE_EXPIRED'))))
        OR o.lease_expires_at > now() + ${LEASE_SECONDS_MAX}::int * interval '1 second'`,
  },
  {
    name: 'events-delivered',
    sentence:
      'An event of a room has one delivery for each endpoint that existed before it, is unchanged since, and wants it.',
    subject: 'events',
    broken: Prisma.sql`
      SELECT DISTINCT v.id FROM newest JOIN events v ON v.id = newest.id
      JOIN webhook_endpoints e ON e.environment_id = v.environment_id AND e.deleted_at IS NULL
        AND e.updated_at < v.created_at - interval '1 minute' AND ('*' = ANY(e.events) OR v.type = ANY(e.events))
      WHERE v.room_id IS NOT NULL AND v.created_at > now() - interval '1 day'
        AND (e.filter IS NULL OR v.erased_at IS NULL)
        AND (SELECT count(*) FROM webhook_deliveries d WHERE d.event_id = v.id AND d.endpoint_id = e.id)
          <> (e.filter IS NULL OR ${matchesFilter(Prisma.sql`e.filter`, Prisma.sql`(v.body::jsonb -> 'data')`)})::int`,
  },
  {
    name: 'attempts-numbered',
    sentence: 'A run of a delivery has no attempt twice, and none above the number in its row.',
    subject: 'deliveries',
    broken: Prisma.sql`
      SELECT d.id FROM newest JOIN webhook_deliveries d ON d.id = newest.id
      WHERE EXISTS (
        SELECT FROM webhook_attempts a WHERE a.delivery_id = d.id
        GROUP BY a.replay_count, a.attempt
        HAVING count(*) > 1 OR (a.replay_count = d.replay_count AND a.attempt > d.run_attempts)
          OR a.replay_count > d.replay_count)`,
  },
  {
    name: 'outcomes-proven',
    sentence: 'A delivery has succeeded if and only if an attempt of its latest run has.',
    subject: 'deliveries',
    broken: Prisma.sql`
      SELECT d.id FROM newest JOIN webhook_deliveries d ON d.id = newest.id
      WHERE (d.status = 'succeeded') <> (
        SELECT count(*) > 0 FROM webhook_attempts a
        WHERE a.delivery_id = d.id AND a.replay_count = d.replay_count AND a.outcome = 'success')`,
  },
  {
    name: 'deliveries-bounded',
    sentence:
      'A finished delivery has its time, one that gave up has used all attempts, and no lease lasts for longer than allowed.',
    subject: 'deliveries',
    broken: Prisma.sql`
      SELECT d.id FROM newest JOIN webhook_deliveries d ON d.id = newest.id
      WHERE (d.status IN ('succeeded', 'failed')) <> (d.completed_at IS NOT NULL)
        OR (d.failure_reason = 'attempts_exhausted' AND d.run_attempts < ${ATTEMPTS_PER_RUN}::int)
        OR d.lease_expires_at > now() + ${LEASE_SECONDS_MAX}::int * interval '1 second'`,
  },
  {
    name: 'rooms-in-order',
    sentence: 'An endpoint with the ordering "room" has at most one delivery of a room in flight.',
    subject: 'deliveries',
    // Deliveries that were in flight when the endpoint got its order may belong to one room.
    broken: Prisma.sql`
      SELECT min(d.id) AS id FROM newest JOIN webhook_deliveries d ON d.id = newest.id
      JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.ordering = 'room'
        AND e.updated_at < now() - ${LEASE_SECONDS_MAX}::int * interval '1 second'
      WHERE d.status = 'delivering' AND d.room_id IS NOT NULL
      GROUP BY d.endpoint_id, d.room_id HAVING count(*) > 1`,
  },
  {
    name: 'tenants-apart',
    sentence: 'A delivery, its event and its endpoint belong to one environment.',
    subject: 'deliveries',
    broken: Prisma.sql`
      SELECT d.id FROM newest JOIN webhook_deliveries d ON d.id = newest.id
      JOIN webhook_endpoints e ON e.id = d.endpoint_id JOIN events v ON v.id = d.event_id
      WHERE d.environment_id <> e.environment_id OR d.environment_id <> v.environment_id`,
  },
  {
    name: 'participants-in-their-room',
    sentence:
      'A participant, its sessions and its room belong to one environment, and a participant has at most one live session.',
    subject: 'participants',
    broken: Prisma.sql`
      SELECT p.id FROM newest JOIN participants p ON p.id = newest.id JOIN rooms r ON r.id = p.room_id
      LEFT JOIN participant_sessions s ON s.participant_id = p.id
      GROUP BY p.id, p.environment_id, r.environment_id
      HAVING p.environment_id <> r.environment_id OR count(*) FILTER (WHERE s.ended_at IS NULL AND s.id IS NOT NULL) > 1
        OR bool_or(s.room_id <> p.room_id OR s.environment_id <> p.environment_id)`,
  },
];

export interface InvariantResult {
  invariant: Pick<Invariant, 'name' | 'sentence' | 'subject'>;
  /** Number of rows that were looked at; null if PostgreSQL cancelled the query because it took too long. */
  checked: number | null;
  broken: number;
  ids: string[];
}

const IDS_MAX = 10;

const TABLES: Record<Invariant['subject'], Prisma.Sql> = {
  rooms: Prisma.sql`rooms`,
  participants: Prisma.sql`participants`,
  operations: Prisma.sql`runtime_operations`,
  events: Prisma.sql`events`,
  deliveries: Prisma.sql`webhook_deliveries`,
};

/** With index scans and nested loops alone, the cost depends on the rows that are looked at, not on the tables. */
export const SETTINGS: readonly Prisma.Sql[] = [
  Prisma.sql`SET TRANSACTION READ ONLY`,
  Prisma.sql`SET LOCAL enable_seqscan = off`,
  Prisma.sql`SET LOCAL enable_hashjoin = off`,
  Prisma.sql`SET LOCAL enable_mergejoin = off`,
];

export function queryOf({ subject, broken }: Invariant, newest: number): Prisma.Sql {
  return Prisma.sql`
    WITH newest AS MATERIALIZED (SELECT id FROM ${TABLES[subject]} ORDER BY id DESC LIMIT ${newest}::int),
    broken AS MATERIALIZED (${broken})
    SELECT (SELECT count(*)::int FROM newest) AS checked, (SELECT count(*)::int FROM broken) AS broken,
      ARRAY(SELECT id FROM broken ORDER BY id LIMIT ${IDS_MAX}::int) AS ids`;
}

/**
 * Checks every invariant on the newest rows, one read-only transaction each, so that no snapshot is held for longer than
 * one query. The cost does not grow with the tables.
 * @param newest how many rows each invariant looks at.
 * @throws if PostgreSQL is unavailable.
 */
export async function checkInvariants(database: Database, newest: number): Promise<InvariantResult[]> {
  const results: InvariantResult[] = [];
  for (const invariant of INVARIANTS) results.push(await check(database, invariant, newest));
  return results;
}

async function check(database: Database, invariant: Invariant, newest: number): Promise<InvariantResult> {
  try {
    return await database.transaction(async (sql) => {
      for (const setting of SETTINGS) await sql.$executeRaw`${setting}`;
      const [row] = await sql.$queryRaw<
        [Omit<InvariantResult, 'invariant'>]
      >`SELECT * FROM (${queryOf(invariant, newest)}) result`;
      return { invariant, ...row };
    });
  } catch (error) {
    if (!isOutOfTime(error)) throw error;
    return { invariant, checked: null, broken: 0, ids: [] };
  }
}
