// The floor of due times and the backlogs before it (docs/decisions/0039), as parts of statements.

import { Prisma } from '../generated/client.js';
import { PENDING, PENDING_BY_TIME } from '../webhooks/delivery.sql.js';

/** Deliveries or operations. */
export type DueQueue = 'deliveries' | 'operations';

/**
 * How far the floor lies back, in milliseconds. A row is due from the beginning of its transaction or later, and
 * becomes visible with the commit. A transaction lasts 15 s at most; one that has written holds the floor back anyway.
 */
export const LATE_MS = 20_000;

/** The latest time that may be a floor. PostgreSQL's clock may have been set back since the floor was written. */
export const FLOOR_MAX = Prisma.sql`(now() - ${LATE_MS}::int * interval '1 millisecond')`;

/** The floor of a queue: open rows that were due earlier belong to a backlog. Without one, the beginning of time. */
export const floorOf = (queue: DueQueue): Prisma.Sql => Prisma.sql`
  coalesce((SELECT least(floor, ${FLOOR_MAX}) FROM due_floors WHERE queue = ${queue}), '-infinity'::timestamptz)`;

/** No pending row of this key is due earlier. */
export const beginningOf = (queue: DueQueue, key: Prisma.Sql, isRetry: Prisma.Sql): Prisma.Sql => Prisma.sql`
  least(${floorOf(queue)}, (
    SELECT since FROM due_backlogs WHERE queue = ${queue} AND due_backlogs.key = ${key} AND due_backlogs.is_retry = ${isRetry}))`;

interface DueSource {
  /** Selects `key`, `is_retry` and `due_at` of pending rows that are due within a range, on an index by due time. */
  readonly within: (range: Prisma.Sql) => Prisma.Sql;
  /** Selects the due time of the first pending row of the key `k` within a range. */
  readonly firstOf: (range: Prisma.Sql) => Prisma.Sql;
}

export const DUE_SOURCES: Readonly<Record<DueQueue, DueSource>> = {
  deliveries: {
    within: (range) => Prisma.sql`
      SELECT endpoint_id AS key, run_attempts > 0 AS is_retry, due_at FROM webhook_deliveries
      WHERE ${PENDING_BY_TIME} AND ${range}`,
    firstOf: (range) => Prisma.sql`
      SELECT due_at FROM webhook_deliveries
      WHERE ${PENDING} AND endpoint_id = k.key AND (run_attempts > 0) = k.is_retry AND ${range}
      ORDER BY due_at LIMIT 1`,
  },
  operations: {
    within: (range) => Prisma.sql`
      SELECT environment_id AS key, false AS is_retry, due_at FROM runtime_operations
      WHERE status = 'pending' AND ${range}`,
    firstOf: (range) => Prisma.sql`
      SELECT due_at FROM runtime_operations WHERE status = 'pending' AND environment_id = k.key AND ${range}
      ORDER BY due_at LIMIT 1`,
  },
};
