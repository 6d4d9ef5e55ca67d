import type { OperationKind } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { literals } from '../client/literals.js';
import { Prisma } from '../generated/client.js';
import { isUnleased } from '../operations/operation.sql.js';
import { dueKeys } from '../sweeps/due.sql.js';

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

/** Due rows are counted up to this number, so that the cost is bounded. */
const DUE_COUNT_MAX = 10_000;

/** Due rows of each queue without a lease. */
export interface DueNow {
  /** Wait of the oldest one, in seconds; 0 when none is due. */
  oldestSeconds: number;
  /** Their number, at most DUE_COUNT_MAX. */
  count: number;
}

/**
 * Cheap enough for frequent polling: it begins at the floor of each queue and at its backlogs
 * (docs/decisions/0039). Deliveries of disabled endpoints do not count.
 */
export async function readDue(db: TypedSql): Promise<Record<Backlog['queue'], DueNow>> {
  const [delivery] = await db.$queryRaw<[DueNow]>`
    WITH due AS MATERIALIZED (
      SELECT d.due_at FROM webhook_deliveries d
      JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.enabled AND e.deleted_at IS NULL
      WHERE d.status = 'pending' AND d.due_at <= now() LIMIT ${DUE_COUNT_MAX}::int
    )
    SELECT ${DUE_NOW} FROM due`;
  const operation = async (kind: OperationKind): Promise<DueNow> => {
    const [row] = await db.$queryRaw<[DueNow]>`
      WITH ${dueKeys('operations')}, due AS MATERIALIZED (
        SELECT o.due_at FROM (SELECT * FROM due_key ORDER BY since OFFSET 0) AS k CROSS JOIN LATERAL (${firstDue(
          Prisma.sql`runtime_operations`,
          Prisma.sql`status = 'pending' AND environment_id = k.key AND kind = ${literals([kind])} AND ${isUnleased}`,
        )}) AS o LIMIT ${DUE_COUNT_MAX}::int
      )
      SELECT ${DUE_NOW} FROM due`;
    return row;
  };
  return {
    'room-end': await operation('room.end'),
    'participant-remove': await operation('participant.remove'),
    'webhook-delivery': delivery,
  };
}

/** The first due rows of the key `k`. */
const firstDue = (table: Prisma.Sql, condition: Prisma.Sql): Prisma.Sql => Prisma.sql`
  SELECT due_at FROM ${table} WHERE ${condition} AND due_at >= k.since AND due_at <= now()
  ORDER BY due_at LIMIT ${Prisma.raw(String(DUE_COUNT_MAX))}`;

const DUE_NOW = Prisma.sql`count(*)::int AS count,
  coalesce(extract(epoch FROM now() - min(due_at))::float8, 0) AS "oldestSeconds"`;

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
