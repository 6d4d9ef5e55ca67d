// A line: the open deliveries of one room to one endpoint that gets rooms in order, first runs apart from replays. Only
// the first of a line is sent. The others are parked when a claim meets them (gated-claims.ts), and become due here.

import type { TypedSql } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';
import { IS_OPEN, IS_PARKED, PARKED_AT } from './delivery.sql.js';

export interface Line {
  endpointId: string;
  roomId: string;
  isReplay: boolean;
}

/**
 * Makes the first delivery of a line due if it is parked. Call it when a delivery of the line has finished.
 *
 * It changes the gate first, so that it waits for a running claim of the endpoint and refuses one that has not seen the
 * finished delivery. Then it updates the first delivery, even if the snapshot does not show it as parked: a claim may
 * have parked it meanwhile.
 * @returns the delivery that is due now, and whether it is a retry; null when there is none or it was not parked.
 */
export async function advanceLine(
  db: TypedSql,
  { endpointId, roomId, isReplay }: Line,
): Promise<{ id: string; isRetry: boolean } | null> {
  const [row] = await db.$queryRaw<{ id: string; isRetry: boolean }[]>`
    WITH gate AS MATERIALIZED (
      UPDATE webhook_gates SET version = version + 1 WHERE endpoint_id = ${endpointId} RETURNING 1 AS one
    )
    UPDATE webhook_deliveries d SET due_at = CASE WHEN d.due_at = ${PARKED_AT} THEN now() ELSE d.due_at END
    FROM gate
    WHERE d.status = 'pending' AND d.id = (
      SELECT id FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND room_id = ${roomId} AND (replay_count > 0) = ${isReplay}::boolean AND ${IS_OPEN}
      ORDER BY sequence LIMIT 1)
    RETURNING d.id, d.run_attempts > 0 AS "isRetry"`;
  return row ?? null;
}

/** Where a pass over the lines with parked deliveries goes on. */
export type LinePosition = Line;

const BEGINNING: LinePosition = { endpointId: '', roomId: '', isReplay: false };

/**
 * Frees parked deliveries whose turn has come without a worker that freed them: it died, a sweep ended the delivery
 * before them, or their endpoint has no order any more. Jumps from line to line, so the cost depends on the number of
 * lines, and is nothing without parked deliveries.
 * @param limit maximum number of lines to examine, and of deliveries to free.
 * @returns `next` is null when the pass has reached the end.
 */
export async function freeParkedDeliveries(
  db: TypedSql,
  from: LinePosition | null,
  limit: number,
): Promise<{ freed: WakeableDelivery[]; next: LinePosition | null }> {
  const after = from ?? BEGINNING;
  const lines = await db.$queryRaw<(Line & { inOrder: boolean; headId: string | null })[]>`
    WITH RECURSIVE line AS (
      (SELECT endpoint_id, room_id, replay_count > 0 AS is_replay, 1 AS n FROM webhook_deliveries
       WHERE ${IS_PARKED}
         AND (endpoint_id, room_id, (replay_count > 0)) > (${after.endpointId}, ${after.roomId}, ${after.isReplay}::boolean)
       ORDER BY endpoint_id, room_id, (replay_count > 0) LIMIT 1)
      UNION ALL
      SELECT next.*, line.n + 1 FROM line CROSS JOIN LATERAL (
        SELECT d.endpoint_id, d.room_id, d.replay_count > 0 FROM webhook_deliveries d
        WHERE ${IS_PARKED} AND (d.endpoint_id, d.room_id, (d.replay_count > 0)) > (line.endpoint_id, line.room_id, line.is_replay)
        ORDER BY d.endpoint_id, d.room_id, (d.replay_count > 0) LIMIT 1
      ) next WHERE line.n < ${limit}::int
    )
    SELECT line.endpoint_id AS "endpointId", line.room_id AS "roomId", line.is_replay AS "isReplay",
      e.ordering = 'room' AS "inOrder", head.id AS "headId"
    FROM line JOIN webhook_endpoints e ON e.id = line.endpoint_id
    LEFT JOIN LATERAL (
      SELECT id, due_at FROM webhook_deliveries
      WHERE endpoint_id = line.endpoint_id AND room_id = line.room_id AND (replay_count > 0) = line.is_replay AND ${IS_OPEN}
      ORDER BY sequence LIMIT 1
    ) head ON head.due_at = ${PARKED_AT}
    ORDER BY line.n`;
  const heads = lines.flatMap(({ inOrder, headId }) => (inOrder && headId !== null ? [headId] : []));
  const unordered = [...new Set(lines.filter(({ inOrder }) => !inOrder).map(({ endpointId }) => endpointId))];
  const freed = [...(await freeHeads(db, heads)), ...(await freeUnordered(db, unordered, limit))];
  const last = lines.at(-1);
  return { freed, next: lines.length < limit || last === undefined ? null : last };
}

async function freeHeads(db: TypedSql, ids: readonly string[]): Promise<WakeableDelivery[]> {
  if (ids.length === 0) return [];
  return db.$queryRaw<WakeableDelivery[]>`
    UPDATE webhook_deliveries SET due_at = now()
    WHERE id = ANY(ARRAY(
      SELECT id FROM webhook_deliveries WHERE id = ANY(ARRAY(SELECT unnest(${ids}::text[]))) AND ${IS_PARKED}
      FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id, endpoint_id AS "endpointId"`;
}

/** Frees all parked deliveries of endpoints without an order. */
async function freeUnordered(db: TypedSql, endpointIds: readonly string[], limit: number): Promise<WakeableDelivery[]> {
  if (endpointIds.length === 0) return [];
  return db.$queryRaw<WakeableDelivery[]>`
    UPDATE webhook_deliveries SET due_at = now()
    WHERE id = ANY(ARRAY(
      SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
      WHERE e.id = ANY(ARRAY(SELECT unnest(${endpointIds}::text[]))) AND e.ordering <> 'room'
        AND (d.status || '') = 'pending' AND d.due_at = ${PARKED_AT}
      LIMIT ${limit} FOR NO KEY UPDATE OF d SKIP LOCKED
    ))
    RETURNING id, endpoint_id AS "endpointId"`;
}
