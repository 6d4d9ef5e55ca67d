import { bools, ints, texts, times } from '../client/arrays.sql.js';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted } from '../operations/operation.sql.js';
import { claimRows, CLAIMED_COLUMNS, NEXT_RETRY_IN_MS } from './claim.sql.js';
import { IS_GATED, PENDING } from './delivery.sql.js';
import type { ClaimedDelivery } from './delivery-leases.js';

// Searches for pending deliveries in this file use the partial index `webhook_deliveries_due_idx`, with the condition
// PENDING.

/**
 * Maximum count of one request. The statement has two limits. The inner limit is this number as a literal: with a
 * parameter, PostgreSQL plans for a tenth of all rows and sorts an endpoint's whole backlog. The outer limit is the
 * request's own count, at which the statement stops reading and locking rows.
 */
export const REQUEST_COUNT_MAX = 64;

/** Asks for the oldest due deliveries of an endpoint, either first attempts or retries. */
export interface DueRequest {
  endpointId: string;
  isRetry: boolean;
  count: number;
  /**
   * Ignores rows that were due earlier. Before this time the index holds entries of deliveries that were already
   * claimed. PostgreSQL can neither skip nor remove them while another transaction holds an old snapshot.
   */
  since: Date | null;
}

export interface DueClaim {
  endpointId: string;
  isRetry: boolean;
  claimed: ClaimedDelivery[];
  /** Whether the endpoint has an order or a limit: then `claimGated` claims its deliveries, and this claim none. */
  isGated: boolean;
  /** Milliseconds until the next retry is due; null for first attempts, and when there is no retry. */
  nextInMs: number | null;
}

const BEGINNING = new Date(0);

/**
 * Claims due rows without a lease and counts an attempt of each delivery, so that a worker that dies right afterwards
 * has used it. The run's first claim pins URL and secret. The commit may be asynchronous: after a crash of PostgreSQL,
 * a lost claim is simply made again. Locked rows are skipped, so the statement never waits and cannot be part of a
 * deadlock.
 * @returns one result for each request, in the same order. Fewer rows than requested means that no more are due and
 *   free from `since` on; only a claim without `since` finds older ones.
 */
export async function claimDueDeliveries(
  db: TypedSql,
  requests: readonly DueRequest[],
  leaseMs: number,
): Promise<DueClaim[]> {
  const rows = await db.$queryRaw<ClaimRow[]>`
    WITH requested AS MATERIALIZED (
      SELECT * FROM unnest(${texts(requests.map(({ endpointId }) => endpointId))},
        ${bools(requests.map(({ isRetry }) => isRetry))}, ${ints(requests.map(({ count }) => count))},
        ${times(requests.map(({ since }) => since ?? BEGINNING))})
        WITH ORDINALITY AS a (endpoint_id, is_retry, count, since, position)
    ), due AS MATERIALIZED (
      SELECT a.position, d.id, e.url, e.signing_key_version, e.standard_webhooks, false AS in_order FROM requested a
      JOIN webhook_endpoints e ON e.id = a.endpoint_id AND e.enabled AND e.deleted_at IS NULL AND NOT ${IS_GATED}
      CROSS JOIN LATERAL (
        SELECT * FROM (
          SELECT id, due_at FROM webhook_deliveries
          WHERE ${PENDING} AND endpoint_id = a.endpoint_id AND (run_attempts > 0) = a.is_retry
            AND due_at >= a.since AND due_at <= now() AND NOT ${isExhausted}
          ORDER BY due_at LIMIT ${Prisma.raw(String(REQUEST_COUNT_MAX))} FOR NO KEY UPDATE SKIP LOCKED
        ) due LIMIT a.count
      ) d
    ), claimed AS (
      ${claimRows(leaseMs)}
    )
    SELECT a.position::int, ${CLAIMED_COLUMNS}, ${NEXT_RETRY_IN_MS} AS "nextInMs",
      EXISTS (
        SELECT 1 FROM webhook_endpoints e
        WHERE e.id = a.endpoint_id AND e.enabled AND e.deleted_at IS NULL AND ${IS_GATED}
      ) AS "isGated"
    FROM requested a LEFT JOIN claimed c ON c.position = a.position
    ORDER BY a.position, c.due_at`;
  return toClaims(requests, rows);
}

function toClaims(requests: readonly DueRequest[], rows: readonly ClaimRow[]): DueClaim[] {
  const claims = requests.map(({ endpointId, isRetry }): DueClaim => ({
    endpointId,
    isRetry,
    claimed: [],
    isGated: false,
    nextInMs: null,
  }));
  for (const { position, nextInMs, isGated, id, ...row } of rows) {
    const claim = claims[position - 1];
    if (claim === undefined) continue;
    claim.nextInMs = nextInMs;
    claim.isGated = isGated;
    if (id !== null) claim.claimed.push({ ...row, id });
  }
  return claims;
}

/** A claimed delivery, or a row without one for a request that claimed nothing. */
interface ClaimRow extends Omit<ClaimedDelivery, 'id'> {
  position: number;
  id: string | null;
  nextInMs: number | null;
  isGated: boolean;
}
