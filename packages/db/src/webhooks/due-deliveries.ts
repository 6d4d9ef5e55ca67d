import { slotMsOfRow, type SlotMs } from '@callplane/core';
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

/** The data that a worker needs to schedule an endpoint. */
export interface SchedulableEndpoint {
  endpointId: string;
  environmentId: string;
  slotMs: SlotMs;
}

/** Finds endpoints that accept deliveries, by their ids and by the ids of deliveries. */
export async function findSchedulableEndpoints(
  db: TypedSql,
  { endpointIds, deliveryIds }: { endpointIds: readonly string[]; deliveryIds: readonly string[] },
): Promise<SchedulableEndpoint[]> {
  const rows = await db.$queryRaw<StandingRow[]>`
    SELECT id AS "endpointId", environment_id AS "environmentId", slot_ms AS "slotMs", proven,
      failing_since AS "failingSince"
    FROM webhook_endpoints
    WHERE id = ANY(ARRAY(
        SELECT unnest(${endpointIds}::text[]) UNION
        SELECT endpoint_id FROM webhook_deliveries WHERE id = ANY(ARRAY(SELECT unnest(${deliveryIds}::text[])))
      )) AND enabled AND deleted_at IS NULL`;
  return rows.map(schedulable);
}

/** An endpoint with due deliveries: first attempts, retries or both. */
export interface DueEndpoint extends SchedulableEndpoint {
  first: boolean;
  retry: boolean;
}

/**
 * Lists endpoints that have due deliveries, by jumping from one endpoint to the next in the index. The cost depends on
 * the number of endpoints with pending deliveries, not on the number of deliveries.
 * @param afterId the cursor of the previous scan; '' starts from the beginning.
 * @param limit maximum number of endpoints with pending deliveries to examine.
 * @returns `nextId` is null when the scan has reached the end.
 */
export async function scanDueEndpoints(
  db: TypedSql,
  afterId: string,
  limit: number,
): Promise<{ due: DueEndpoint[]; nextId: string | null }> {
  const rows = await db.$queryRaw<(StandingRow & { first: boolean; retry: boolean; usable: boolean })[]>`
    WITH RECURSIVE found AS (
      (SELECT endpoint_id, 1 AS n FROM webhook_deliveries
       WHERE ${PENDING} AND endpoint_id > ${afterId} ORDER BY endpoint_id LIMIT 1)
      UNION ALL
      SELECT next.endpoint_id, found.n + 1 FROM found CROSS JOIN LATERAL (
        SELECT d.endpoint_id FROM webhook_deliveries d
        WHERE ${PENDING} AND d.endpoint_id > found.endpoint_id ORDER BY d.endpoint_id LIMIT 1
      ) next WHERE found.n < ${limit}::int
    )
    SELECT e.id AS "endpointId", e.environment_id AS "environmentId", e.slot_ms AS "slotMs", e.proven,
      e.failing_since AS "failingSince", e.enabled AND e.deleted_at IS NULL AS usable,
      ${hasDue('first')} AS first, ${hasDue('retry')} AS retry
    FROM found JOIN webhook_endpoints e ON e.id = found.endpoint_id
    CROSS JOIN (SELECT false AS first, true AS retry OFFSET 0) AS kind
    ORDER BY found.n`;
  const due = rows
    .filter(({ usable, first, retry }) => usable && (first || retry))
    .map(({ first, retry, ...row }) => ({ ...schedulable(row), first, retry }));
  return { due, nextId: rows.length < limit ? null : (rows.at(-1)?.endpointId ?? null) };
}

/**
 * Whether the endpoint `found` has a due delivery of this kind. The kind comes from a column, because PostgreSQL
 * rewrites a comparison with the constant `false` into an expression that does not match the index.
 */
function hasDue(kind: 'first' | 'retry'): Prisma.Sql {
  return Prisma.sql`(
    SELECT true FROM webhook_deliveries
    WHERE ${PENDING} AND endpoint_id = found.endpoint_id AND (run_attempts > 0) = ${Prisma.raw(`kind.${kind}`)}
      AND due_at <= now() ORDER BY due_at LIMIT 1
  ) IS NOT NULL`;
}

interface StandingRow {
  endpointId: string;
  environmentId: string;
  slotMs: number | null;
  proven: boolean;
  failingSince: Date | null;
}

function schedulable({ endpointId, environmentId, ...row }: StandingRow): SchedulableEndpoint {
  return { endpointId, environmentId, slotMs: slotMsOfRow(row) };
}
