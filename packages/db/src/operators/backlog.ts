import type { OperationKind } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { literals } from '../client/literals.js';
import { Prisma } from '../generated/client.js';
import { isUnleased } from '../operations/operation.sql.js';

/** The backlog of one queue, counted from the rows: Redis may be missing some. */
export interface Backlog {
  queue: 'room-end' | 'participant-remove' | 'webhook-delivery';
  /** Due rows without a lease. */
  due: number;
  /** Rows that are not due yet: retries. */
  scheduled: number;
  /** Rows that a worker holds under a lease. */
  held: number;
  /** How long the oldest due row has waited, in milliseconds; null when none is due. */
  oldestDueMs: number | null;
}

/**
 * Reads the backlogs of all three queues, including empty ones. Deliveries of disabled endpoints are held back on
 * purpose and do not count.
 */
export async function readBacklogs(db: TypedSql): Promise<Backlog[]> {
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

/** Wait of the oldest due row of each queue, in seconds; 0 when none is due. */
export type OldestDue = Record<Backlog['queue'], number>;

/** Cheap enough for frequent polling: each part reads only the first entry of an index of open rows. */
export async function readOldestDue(db: TypedSql): Promise<OldestDue> {
  const [row] = await db.$queryRaw<[{ roomEnd: number; participantRemove: number; delivery: number }]>`
    SELECT ${ageOf(oldestOperation('room.end'))} AS "roomEnd",
      ${ageOf(oldestOperation('participant.remove'))} AS "participantRemove",
      ${ageOf(Prisma.sql`
        SELECT d.due_at FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
        WHERE d.status IN ('pending', 'delivering') AND d.status = 'pending' AND d.due_at <= now() AND e.enabled
          AND e.deleted_at IS NULL ORDER BY d.due_at LIMIT 1`)} AS delivery`;
  return { 'room-end': row.roomEnd, 'participant-remove': row.participantRemove, 'webhook-delivery': row.delivery };
}

const oldestOperation = (kind: OperationKind): Prisma.Sql => Prisma.sql`
  SELECT due_at FROM runtime_operations WHERE status = 'pending' AND kind = ${literals([kind])} AND due_at <= now()
    AND ${isUnleased} ORDER BY due_at LIMIT 1`;

const ageOf = (due: Prisma.Sql): Prisma.Sql =>
  Prisma.sql`coalesce((SELECT extract(epoch FROM now() - due_at)::float8 FROM (${due}) AS oldest), 0)`;

/** Live rooms and participants over all tenants. */
export interface LiveCounts {
  /** Rooms with live sessions. */
  rooms: number;
  /** Live sessions. */
  participants: number;
}

export async function readLiveCounts(db: TypedSql): Promise<LiveCounts> {
  const [row] = await db.$queryRaw<[LiveCounts]>`
    SELECT count(DISTINCT room_id)::int AS rooms, count(*)::int AS participants
    FROM participant_sessions WHERE ended_at IS NULL`;
  return row;
}
