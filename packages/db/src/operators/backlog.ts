import type { Db } from '../client/database.js';

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
