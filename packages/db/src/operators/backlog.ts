import type { Db } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** What waits behind one queue, by the rows: Redis may know less. */
export interface Backlog {
  queue: 'room-end' | 'participant-remove' | 'webhook-delivery';
  /** Rows that are due and that nobody holds. */
  due: number;
  /** Rows that wait for their time: retries. */
  scheduled: number;
  /** Rows that a worker holds. */
  held: number;
  /** How long the oldest due row has waited, in milliseconds; null when none is due. */
  oldestDueMs: number | null;
}

/** All three, also the empty ones. Deliveries of disabled endpoints are held back on purpose and do not count. */
export async function readBacklogs(db: Db): Promise<Backlog[]> {
  const rows = await db.$queryRaw<Backlog[]>`
    WITH open AS (
      SELECT CASE kind WHEN 'room.end' THEN 'room-end' ELSE 'participant-remove' END AS queue, due_at,
        coalesce(lease_expires_at > now(), false) AS held
      FROM runtime_operations WHERE status = 'pending'
      UNION ALL
      SELECT 'webhook-delivery', d.due_at, d.status = 'delivering'
      FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
      WHERE d.status IN ('pending', 'delivering') AND e.enabled AND e.deleted_at IS NULL
    )
    SELECT queue, count(*) FILTER (WHERE NOT held AND due_at <= now())::int AS due,
      count(*) FILTER (WHERE NOT held AND due_at > now())::int AS scheduled,
      count(*) FILTER (WHERE held)::int AS held,
      (extract(epoch FROM now() - min(due_at) FILTER (WHERE NOT held AND due_at <= now())) * 1000)::float8 AS "oldestDueMs"
    FROM open GROUP BY queue`;
  const queues = ['room-end', 'participant-remove', 'webhook-delivery'] as const;
  return queues.map(
    (queue) => rows.find((row) => row.queue === queue) ?? { queue, due: 0, scheduled: 0, held: 0, oldestDueMs: null },
  );
}

/** For how long the oldest due row behind each queue has waited, in seconds; 0 when none is due. */
export type OldestDue = Record<Backlog['queue'], number>;

/** Cheap enough to be asked all the time: each follows an index of open rows to its first. */
export async function readOldestDue(db: Db): Promise<OldestDue> {
  const [row] = await db.$queryRaw<[{ roomEnd: number; participantRemove: number; delivery: number }]>`
    SELECT ${ageOf(Prisma.sql`
        SELECT due_at FROM runtime_operations WHERE status = 'pending' AND kind = 'room.end' AND due_at <= now()
          AND (lease_expires_at IS NULL OR lease_expires_at <= now()) ORDER BY due_at LIMIT 1`)} AS "roomEnd",
      ${ageOf(Prisma.sql`
        SELECT due_at FROM runtime_operations WHERE status = 'pending' AND kind = 'participant.remove' AND due_at <= now()
          AND (lease_expires_at IS NULL OR lease_expires_at <= now()) ORDER BY due_at LIMIT 1`)} AS "participantRemove",
      ${ageOf(Prisma.sql`
        SELECT d.due_at FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
        WHERE d.status IN ('pending', 'delivering') AND d.status = 'pending' AND d.due_at <= now() AND e.enabled
          AND e.deleted_at IS NULL ORDER BY d.due_at LIMIT 1`)} AS delivery`;
  return { 'room-end': row.roomEnd, 'participant-remove': row.participantRemove, 'webhook-delivery': row.delivery };
}

const ageOf = (due: Prisma.Sql): Prisma.Sql =>
  Prisma.sql`coalesce((SELECT extract(epoch FROM now() - due_at)::float8 FROM (${due}) AS oldest), 0)`;

/** What is live now, over all tenants. */
export interface LiveCounts {
  /** Rooms with somebody in them. */
  rooms: number;
  /** Live sessions. */
  participants: number;
}

export async function readLiveCounts(db: Db): Promise<LiveCounts> {
  const [row] = await db.$queryRaw<[LiveCounts]>`
    SELECT count(DISTINCT room_id)::int AS rooms, count(*)::int AS participants
    FROM participant_sessions WHERE ended_at IS NULL`;
  return row;
}
