import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted } from '../operations/operation.sql.js';
import { IS_GATED, PARKED_AT, PENDING } from './delivery.sql.js';
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
      SELECT * FROM unnest(${requests.map(({ endpointId }) => endpointId)}::text[],
        ${requests.map(({ isRetry }) => isRetry)}::boolean[], ${requests.map(({ count }) => count)}::int[],
        ${requests.map(({ since }) => (since ?? BEGINNING).toISOString())}::timestamptz[])
        WITH ORDINALITY AS a (endpoint_id, is_retry, count, since, position)
    ), due AS MATERIALIZED (
      SELECT a.position, d.id, d.due_at, e.url, e.signing_key_version, e.standard_webhooks FROM requested a
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
      UPDATE webhook_deliveries d
      SET status = 'delivering', lease_token = gen_random_uuid(),
        lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond', run_attempts = d.run_attempts + 1,
        url = coalesce(d.url, due.url), secret_version = coalesce(d.secret_version, due.signing_key_version)
      FROM due, webhook_secrets s, events v
      WHERE d.id = ANY(ARRAY(SELECT id FROM due)) AND d.id = due.id AND d.status = 'pending'
        AND s.endpoint_id = d.endpoint_id AND s.version = coalesce(d.secret_version, due.signing_key_version) AND v.id = d.event_id
      RETURNING due.position, d.id, d.environment_id, d.event_id, d.event_type, d.replay_count, d.run_attempts, d.url,
        d.secret_version, s.secret_sealed, v.body, v.traceparent, d.lease_token, d.run_started_at, d.due_at,
        due.standard_webhooks, NULL::text AS room_id
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

/** The columns of a {@link ClaimedDelivery}: `c` has the claimed rows, `a` the request. */
export const CLAIMED_COLUMNS = Prisma.sql`c.id, c.environment_id AS "environmentId", a.endpoint_id AS "endpointId",
      c.event_id AS "eventId", c.event_type AS "eventType", c.replay_count AS "replayCount",
      c.run_attempts AS "runAttempt", c.url, c.secret_version AS "secretVersion", c.secret_sealed AS "secretSealed",
      c.body, c.traceparent, c.lease_token::text AS "leaseToken", now() AS "startedAt", c.due_at AS "dueAt",
      (extract(epoch FROM now() - c.run_started_at) * 1000)::float8 AS "runAgeMs",
      (extract(epoch FROM now() - c.due_at) * 1000)::float8 AS "lagMs", c.standard_webhooks AS "standardWebhooks",
      c.room_id AS "lineRoomId"`;

/** Milliseconds until the next retry of the endpoint of the request `a` is due. */
export const NEXT_RETRY_IN_MS = Prisma.sql`CASE WHEN a.is_retry THEN (
        SELECT ceil(extract(epoch FROM due_at - now()) * 1000)::float8 FROM webhook_deliveries
        WHERE ${PENDING} AND endpoint_id = a.endpoint_id AND (run_attempts > 0) = a.is_retry AND due_at > now()
          AND due_at < ${PARKED_AT}
        ORDER BY due_at LIMIT 1
      ) END`;

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
