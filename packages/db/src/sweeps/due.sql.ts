// The floor of due times and the backlogs before it (docs/decisions/0039), as parts of statements.

import { Prisma } from '../generated/client.js';

/** The queue of operations. */
export type DueQueue = 'operations';

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

/** No pending row of the queue is due earlier, in any backlog. */
export const earliestDue = (queue: DueQueue): Prisma.Sql => Prisma.sql`
  least(${floorOf(queue)}, (SELECT min(since) FROM due_backlogs WHERE queue = ${queue}))`;

interface DueSource {
  /** Selects `key`, `is_retry` and `due_at` of pending rows that are due within a range, on an index by due time. */
  readonly within: (range: Prisma.Sql) => Prisma.Sql;
  /** Selects the due time of the first pending row of the key `k` within a range. */
  readonly firstOf: (range: Prisma.Sql) => Prisma.Sql;
}

export const DUE_SOURCES: Readonly<Record<DueQueue, DueSource>> = {
  operations: {
    within: (range) => Prisma.sql`
      SELECT environment_id AS key, false AS is_retry, due_at FROM runtime_operations
      WHERE status = 'pending' AND ${range}`,
    firstOf: (range) => Prisma.sql`
      SELECT due_at FROM runtime_operations WHERE status = 'pending' AND environment_id = k.key AND ${range}
      ORDER BY due_at LIMIT 1`,
  },
};

/**
 * The CTEs `floor (at)` and `due_key (key, is_retry, since)`: all keys that may have due rows, and the time from which
 * on these are due.
 */
export const dueKeys = (queue: DueQueue): Prisma.Sql => Prisma.sql`
  floor AS MATERIALIZED (SELECT ${floorOf(queue)} AS at), due_key AS MATERIALIZED (
    SELECT key, is_retry, min(since) AS since FROM (
      SELECT key, is_retry, since FROM due_backlogs WHERE queue = ${queue}
      UNION ALL
      SELECT DISTINCT key, is_retry, (SELECT at FROM floor) FROM (
        ${DUE_SOURCES[queue].within(Prisma.sql`due_at >= (SELECT at FROM floor) AND due_at <= now()`)}
      ) AS recent
    ) AS every GROUP BY key, is_retry
  )`;
