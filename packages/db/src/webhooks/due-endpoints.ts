import type { SlotMs } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

export interface DueEndpoint {
  endpointId: string;
  environmentId: string;
  slotMs: SlotMs;
}

export const DUE_ENDPOINT = Prisma.sql`e.id AS "endpointId", e.environment_id AS "environmentId", e.slot_ms AS "slotMs"`;

/**
 * Finds enabled endpoints with deliveries that have been due for a while. It walks the index of pending deliveries one
 * step an endpoint, however many deliveries an endpoint has.
 * @param page `afterId` is the cursor of the page before; '' begins anew.
 * @returns `nextId` is null when the walk has reached the end.
 */
export async function findDueEndpoints(
  db: TypedSql,
  forMs: number,
  page: { afterId: string; limit: number },
): Promise<{ due: DueEndpoint[]; nextId: string | null }> {
  const rows = await db.$queryRaw<({ id: string } & (DueEndpoint | { endpointId: null }))[]>`
    WITH RECURSIVE first AS (
      (SELECT endpoint_id, due_at, 1 AS n FROM webhook_deliveries
       WHERE status = 'pending' AND endpoint_id > ${page.afterId} ORDER BY endpoint_id, due_at LIMIT 1)
      UNION ALL
      SELECT next.*, first.n + 1 FROM first CROSS JOIN LATERAL (
        SELECT endpoint_id, due_at FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > first.endpoint_id
        ORDER BY endpoint_id, due_at LIMIT 1
      ) next WHERE first.n < ${page.limit}::int
    )
    SELECT first.endpoint_id AS id, ${DUE_ENDPOINT} FROM first
    LEFT JOIN webhook_endpoints e ON e.id = first.endpoint_id AND e.enabled AND e.deleted_at IS NULL
      AND first.due_at <= now() - ${forMs}::int * interval '1 millisecond'
    ORDER BY first.endpoint_id`;
  const due = rows.flatMap(({ id: _, ...endpoint }) => (endpoint.endpointId === null ? [] : [endpoint]));
  return { due, nextId: rows.length < page.limit ? null : (rows.at(-1)?.id ?? null) };
}
