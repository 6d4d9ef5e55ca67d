// Claims of endpoints that have an order, a rate or a maximum of concurrent attempts (docs/decisions/0031). Each such
// endpoint has a row in `webhook_gates`, and its claims go through this gate one at a time. Endpoints without any of
// these have no gate and are claimed by due-deliveries.ts.

import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted } from '../operations/operation.sql.js';
import type { ClaimedDelivery } from './delivery-leases.js';
import { claimRows, CLAIMED_COLUMNS, NEXT_RETRY_IN_MS } from './claim.sql.js';
import { IS_GATED, IS_OPEN, PARKED_AT, PENDING } from './delivery.sql.js';
import type { DueClaim, DueRequest } from './due-deliveries.js';

/**
 * Time by which a claim may lag behind `max_per_second` and catch up, in milliseconds. With it, workers claim at most
 * 4 % more deliveries in one second than the limit (rounded up). A longer time would let them claim more. A shorter one
 * loses attempts when workers are late.
 */
const RATE_BURST_MS = 40;
/**
 * Time after its token of `max_per_second` in which an attempt may begin, in milliseconds. It bounds the attempts that
 * begin in one second to 5 % more than the limit (rounded up).
 */
const START_MS_MAX = 50;
/** A worker without tokens waits for as many as come in this time, so that it does not claim one delivery at a time. */
const RATE_STEP_MS = 20;
/** Candidates that one claim examines for an endpoint with an order. It parks those that wait for another one. */
const CANDIDATES_MAX = 64;
/** Pause after another worker held the gate, in milliseconds. */
const BUSY_MS = 10;
/**
 * Pause when all attempts that the endpoint allows are in flight, in milliseconds. When an attempt of this worker ends,
 * the pause ends, too. The worker notices the end of other workers' attempts after at most this time.
 */
const FULL_MS = 1000;

/** A claim of one endpoint and kind that has gone through the endpoint's gate. */
export interface GatedClaim extends DueClaim {
  /** Whether the endpoint has a maximum rate. */
  isPaced: boolean;
  /** Whether more deliveries may be due than were claimed. */
  isMore: boolean;
  /** How long to claim nothing of the endpoint; null if it may be claimed from at once. */
  pause: { forMs: number; endsWithAttempt: boolean } | null;
}

/**
 * Claims due deliveries of a gated endpoint, like `claimDueDeliveries`, but no more than its rate and its concurrency
 * allow, and only the first of each line if it has an order. Other deliveries of a line are parked on the way, each at
 * most once, so that the next claim does not read past them.
 *
 * The gate makes claims of one endpoint correct without waiting. A claim locks the gate, or gives up if another claim
 * holds it. It also gives up if another claim has committed since its own snapshot was taken. It compares two versions
 * of the gate: the locked row has the newest one, and the sub-select that of the snapshot. So a claim always sees all
 * deliveries that are in flight.
 *
 * The commit is synchronous, unlike that of other claims: an event must not be sent while a crash of PostgreSQL has
 * undone the claim of the one before it.
 */
export async function claimGated(db: TypedSql, request: DueRequest, leaseMs: number): Promise<GatedClaim> {
  const { endpointId, isRetry, count, since } = request;
  const rows = await db.$queryRaw<GatedRow[]>`
    WITH asked AS MATERIALIZED (
      SELECT e.id AS endpoint_id, e.url, e.signing_key_version, e.standard_webhooks, e.ordering = 'room' AS in_order,
        e.max_per_second, e.max_concurrent, ${isRetry}::boolean AS is_retry, ${count}::int AS count
      FROM webhook_endpoints e WHERE e.id = ${endpointId} AND e.enabled AND e.deleted_at IS NULL AND ${IS_GATED}
    ), gate AS MATERIALIZED (
      SELECT g.next_at, g.in_flight FROM webhook_gates g
      WHERE g.endpoint_id = ${endpointId}
        AND g.version = (SELECT version FROM webhook_gates WHERE endpoint_id = ${endpointId})
      FOR NO KEY UPDATE SKIP LOCKED
    ), in_flight AS MATERIALIZED (
      SELECT id, room_id FROM webhook_deliveries
      WHERE id = ANY(ARRAY(SELECT unnest(in_flight) FROM gate)) AND status = 'delivering'
    ), ${ALLOWED}, candidate AS MATERIALIZED (
      SELECT d.*, a.in_order FROM allowed a CROSS JOIN LATERAL (
        SELECT * FROM (
          SELECT id, due_at, room_id, replay_count > 0 AS is_replay, sequence FROM webhook_deliveries
          WHERE ${PENDING} AND endpoint_id = a.endpoint_id AND (run_attempts > 0) = a.is_retry
            AND due_at >= ${(since ?? new Date(0)).toISOString()}::timestamptz AND due_at <= now() AND NOT ${isExhausted}
          ORDER BY due_at LIMIT ${Prisma.raw(String(CANDIDATES_MAX))} FOR NO KEY UPDATE SKIP LOCKED
        ) due LIMIT a.looks
      ) d
    ), ${JUDGED}, due AS MATERIALIZED (
      SELECT 1 AS position, chosen.id, a.url, a.signing_key_version, a.standard_webhooks, a.in_order
      FROM chosen, asked a
    ), claimed AS (
      ${claimRows(leaseMs)}
    ), ${PASSED}
    SELECT ${CLAIMED_COLUMNS}, ${NEXT_RETRY_IN_MS} AS "nextInMs", a.endpoint_id IS NOT NULL AS "isGated",
      a.max_per_second IS NOT NULL AS "isPaced",
      EXISTS (SELECT 1 FROM webhook_gates WHERE endpoint_id = ${endpointId}) AS "hasGate",
      allowed.rate_left AS "rateLeft", allowed.concurrency_left AS "concurrencyLeft",
      allowed.interval_ms AS "intervalMs", (extract(epoch FROM now() - allowed.base_at) * 1000)::float8 AS "tokenAgeMs",
      allowed.next_tokens_ms AS "nextTokensMs", allowed.looks,
      (SELECT count(*)::int FROM candidate) AS examined, (SELECT count(*)::int FROM parked) AS parked
    FROM (SELECT 1 AS one) one LEFT JOIN asked a ON true LEFT JOIN allowed ON true LEFT JOIN claimed c ON true
    ORDER BY c.due_at`;
  const claim = toClaim(request, rows);
  if (rows[0]?.isGated !== true || rows[0].hasGate) return claim;
  await insertGate(db, endpointId);
  return { ...claim, isMore: true, pause: null };
}

/** Adds the gate of an endpoint. Attempts that are in flight count, although they began without a gate. */
function insertGate(db: TypedSql, endpointId: string): PromiseLike<number> {
  return db.$executeRaw`
    INSERT INTO webhook_gates (endpoint_id, in_flight)
    VALUES (${endpointId}, ARRAY(
      SELECT id FROM webhook_deliveries WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} AND status = 'delivering'
    ))
    ON CONFLICT DO NOTHING`;
}

/**
 * How many deliveries may be claimed. The rate is a token bucket without a counter (GCRA): `next_at` is when the next
 * attempt may begin, and each claimed delivery moves it by the interval of the rate. It is never more than a second
 * away, except after PostgreSQL's clock was set back.
 */
const ALLOWED = Prisma.sql`room AS MATERIALIZED (
      SELECT a.*, greatest(least(gate.next_at, now() + interval '1 second'),
          now() - ${RATE_BURST_MS}::int * interval '1 millisecond') AS base_at,
        CASE WHEN a.max_concurrent IS NOT NULL
          THEN greatest(0, a.max_concurrent - (SELECT count(*) FROM in_flight))::int END AS concurrency_left
      FROM asked a, gate
    ), allowed AS MATERIALIZED (
      SELECT room.*, rate.*, least(count, rate_left, concurrency_left) AS n,
        CASE WHEN least(count, rate_left, concurrency_left) = 0 THEN 0
          WHEN in_order THEN ${CANDIDATES_MAX}::int ELSE least(count, rate_left, concurrency_left) END AS looks,
        (extract(epoch FROM base_at - now()) * 1000)::float8
          + (least(count, ceil(${RATE_STEP_MS}::int / interval_ms)) - 1) * interval_ms AS next_tokens_ms
      FROM room CROSS JOIN LATERAL (
        SELECT 1000.0::float8 / max_per_second AS interval_ms, CASE WHEN max_per_second IS NOT NULL THEN greatest(0,
          1 + floor(extract(epoch FROM now() - base_at)::float8 * max_per_second + 1e-6))::int END AS rate_left
      ) rate
    )`;

/**
 * `judged` tells which candidates wait for an earlier delivery of their line, and `parked` parks these. `chosen` takes
 * the others, but only one of a room, and none of a room that has a delivery in flight: a replay is in another line than
 * the first runs of its room.
 */
const JUDGED = Prisma.sql`judged AS MATERIALIZED (
      SELECT c.*, c.in_order AND EXISTS (
          SELECT 1 FROM webhook_deliveries b
          WHERE b.endpoint_id = (SELECT endpoint_id FROM asked) AND b.room_id = c.room_id
            AND (b.replay_count > 0) = c.is_replay AND ${IS_OPEN} AND b.sequence < c.sequence
        ) AS is_blocked
      FROM candidate c
    ), chosen AS MATERIALIZED (
      SELECT id FROM (
        SELECT j.*, row_number() OVER (PARTITION BY CASE WHEN in_order THEN coalesce(room_id, id) ELSE id END
          ORDER BY due_at) AS of_room
        FROM judged j
        WHERE NOT is_blocked AND NOT (in_order AND room_id IS NOT NULL
          AND room_id = ANY(ARRAY(SELECT room_id FROM in_flight WHERE room_id IS NOT NULL)))
      ) free WHERE of_room = 1 ORDER BY due_at LIMIT (SELECT n FROM allowed)
    ), parked AS (
      UPDATE webhook_deliveries d SET due_at = ${PARKED_AT}
      WHERE d.id = ANY(ARRAY(SELECT id FROM judged WHERE is_blocked)) AND d.status = 'pending'
      RETURNING d.id
    )`;

/** Records the claimed deliveries at the gate. */
const PASSED = Prisma.sql`passed AS (
      UPDATE webhook_gates g SET version = g.version + 1,
        next_at = CASE WHEN a.max_per_second IS NULL THEN g.next_at
          ELSE a.base_at + (SELECT count(*) FROM claimed) * interval '1 second' / a.max_per_second END,
        in_flight = ARRAY(SELECT id FROM in_flight UNION ALL SELECT id FROM claimed)
      FROM allowed a WHERE g.endpoint_id = a.endpoint_id AND (SELECT count(*) FROM claimed) > 0
    )`;

/** A claimed delivery, or one row without any; every row has the same state of the gate. */
interface GatedRow extends Omit<ClaimedDelivery, 'id'> {
  id: string | null;
  nextInMs: number | null;
  isGated: boolean;
  isPaced: boolean;
  hasGate: boolean;
  /** As of before the claim; null without this limit. All are null if the gate was held. */
  rateLeft: number | null;
  concurrencyLeft: number | null;
  /** Time between two attempts at the maximum rate, in milliseconds. */
  intervalMs: number | null;
  /** Age of the first token at the time of the claim, in milliseconds. */
  tokenAgeMs: number | null;
  /** Time until several tokens of the rate are there, in milliseconds. */
  nextTokensMs: number | null;
  looks: number | null;
  examined: number;
  parked: number;
}

function toClaim({ endpointId, isRetry, count }: DueRequest, rows: readonly GatedRow[]): GatedClaim {
  const [state] = rows;
  const claimed = rows.flatMap(claimedOf);
  const claim = {
    endpointId,
    isRetry,
    claimed,
    isGated: state?.isGated ?? false,
    isPaced: state?.isPaced ?? false,
    nextInMs: state?.nextInMs ?? null,
  };
  if (state === undefined || !state.isGated) return { ...claim, isMore: false, pause: null };
  return { ...claim, ...restOf(state, claimed.length, count) };
}

function claimedOf({ id, ...row }: GatedRow, index: number): ClaimedDelivery[] {
  if (id === null) return [];
  const { intervalMs, tokenAgeMs } = row;
  if (intervalMs === null || tokenAgeMs === null) return [{ ...row, id }];
  // Deliveries of one claim take one token after the other.
  return [{ ...row, id, startWithinMs: START_MS_MAX - (tokenAgeMs - index * intervalMs) }];
}

/** Why a claim took fewer deliveries than requested, and when the next one is worth while. */
function restOf(state: GatedRow, claimed: number, count: number): Pick<GatedClaim, 'isMore' | 'pause'> {
  const { looks, rateLeft, concurrencyLeft, intervalMs, nextTokensMs, examined, parked } = state;
  if (looks === null) return { isMore: true, pause: { forMs: BUSY_MS, endsWithAttempt: false } };
  if (claimed >= count) return { isMore: true, pause: null };
  if (rateLeft !== null && intervalMs !== null && nextTokensMs !== null && claimed >= rateLeft) {
    const forMs = Math.max(1, nextTokensMs + claimed * intervalMs);
    return { isMore: true, pause: { forMs, endsWithAttempt: false } };
  }
  const full = { isMore: true, pause: { forMs: FULL_MS, endsWithAttempt: true } };
  if (concurrencyLeft !== null && claimed >= concurrencyLeft) return full;
  if (examined === looks && claimed + parked > 0) return { isMore: true, pause: null };
  return examined > claimed + parked ? full : { isMore: false, pause: null };
}
