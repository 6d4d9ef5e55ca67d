import { QUEUE_OF_OPERATION } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isUnleased } from '../operations/operation.sql.js';

const OPERATION_QUEUES = Object.entries(QUEUE_OF_OPERATION);
const QUEUES = [...Object.values(QUEUE_OF_OPERATION), 'webhook-delivery' as const];

/** The backlog of one queue, counted from the rows: Redis may be missing some. */
export interface Backlog {
  queue: (typeof QUEUES)[number];
  due: number;
  scheduled: number;
  held: number;
  /** How long the oldest due row has waited, in milliseconds; null when none is due. */
  oldestDueMs: number | null;
  /** The same without deliveries of endpoints whose attempts fail; null when none of the others is due. */
  oldestWorkingDueMs: number | null;
}

/**
 * Rows of each queue are counted up to this number, so that the cost is bounded: operations in the order of their due
 * times, deliveries in any order, because none of their indexes orders the due times of all endpoints.
 */
const COUNTED_MAX = 10_000;
const FIRST = Prisma.sql`ORDER BY due_at LIMIT ${Prisma.raw(String(COUNTED_MAX))}`;

/**
 * Reads the backlogs of all queues, including empty ones. Deliveries of disabled endpoints are held back on
 * purpose and do not count.
 */
export async function readBacklogs(db: TypedSql): Promise<Backlog[]> {
  const operations = OPERATION_QUEUES.map(
    ([kind, queue]) => Prisma.sql`
    (SELECT ${queue} AS queue, due_at, NOT ${isUnleased} AS held, true AS working FROM runtime_operations
      WHERE status = 'pending' AND kind = ${kind} ${FIRST})`,
  );
  const isEnabled = Prisma.sql`
    EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = endpoint_id AND e.enabled AND e.deleted_at IS NULL)`;
  const isWorking = Prisma.sql`
    EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = endpoint_id AND e.failing_since IS NULL)`;
  const oldestOf = (rows: Prisma.Sql): Prisma.Sql => Prisma.sql`
    (extract(epoch FROM now() - min(due_at) FILTER (WHERE NOT held AND due_at <= now() AND ${rows})) * 1000)::float8`;
  const rows = await db.$queryRaw<Backlog[]>`
    SELECT queue, count(*) FILTER (WHERE NOT held AND due_at <= now())::int AS due,
      count(*) FILTER (WHERE NOT held AND due_at > now())::int AS scheduled,
      count(*) FILTER (WHERE held)::int AS held,
      ${oldestOf(Prisma.sql`true`)} AS "oldestDueMs", ${oldestOf(Prisma.sql`working`)} AS "oldestWorkingDueMs"
    FROM (
      ${Prisma.join(operations, ' UNION ALL ')}
      UNION ALL
      (SELECT 'webhook-delivery', due_at, false, ${isWorking} FROM webhook_deliveries
        WHERE status = 'pending' AND due_at <= now() AND ${isEnabled} LIMIT ${COUNTED_MAX}::int)
      UNION ALL
      (SELECT 'webhook-delivery', due_at, false, ${isWorking} FROM webhook_deliveries
        WHERE status = 'pending' AND due_at > now() AND ${isEnabled} LIMIT ${COUNTED_MAX}::int)
      UNION ALL
      (SELECT 'webhook-delivery', due_at, true, true FROM webhook_deliveries
        WHERE lease_expires_at IS NOT NULL AND ${isEnabled} ORDER BY lease_expires_at LIMIT ${COUNTED_MAX}::int)
    ) AS open (queue, due_at, held, working) GROUP BY queue`;
  const none = { due: 0, scheduled: 0, held: 0, oldestDueMs: null, oldestWorkingDueMs: null };
  return QUEUES.map((queue) => rows.find((row) => row.queue === queue) ?? { queue, ...none });
}
