import { SLOT_MS_MIN, SLOW_FROM_MS, TURN_DELIVERIES_MAX, type Lane, type SlotMs } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { COMMIT_SOON } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import type { ClaimedDelivery } from './delivery-leases.js';
import { ENDPOINT_OPTION_FIELDS, IS_OPEN, SIGNING_KEY_VERSION } from './webhooks.sql.js';

/** Time of `max_per_second` that a claim may catch up, in milliseconds (docs/webhooks.md): 4 % more attempts in a second. */
const RATE_BURST_MS = 40;

interface ClaimRequest {
  endpointId: string;
  lane: Lane;
  /** Fencing token of all deliveries that the claim takes. */
  token: string;
  leaseMs: number;
  /** Deliveries to claim at most, of an endpoint that is quick and has no limits. Others get one. */
  deliveriesMax: number;
  /** The room after which the claim of an endpoint with an order begins. */
  afterRoomId: string;
}

export interface Claim {
  /** Null if the endpoint is disabled or deleted. */
  endpoint: ClaimedEndpoint | null;
  claimed: ClaimedDelivery[];
  isMore: boolean;
  /** Time until another delivery becomes due, in milliseconds; null if none does. */
  nextInMs: number | null;
}

interface ClaimedEndpoint {
  slotMs: SlotMs;
  maxConcurrent: number | null;
  /** Whether it has an order or a limit: due deliveries may wait for the ones in flight. */
  isLimited: boolean;
  /** Time until `max_per_second` allows the next attempt, in milliseconds; null without this limit. */
  paceMs: number | null;
}

/**
 * Claims due deliveries of an endpoint for one turn, and counts an attempt of each. The run's first claim pins URL and
 * secret. Locked rows are skipped, so that a claim never waits for a delivery. In the fast lane it claims nothing if the
 * endpoint has become slow.
 */
export async function claimDeliveries(
  database: Pick<Database, 'sql' | 'transaction'>,
  request: ClaimRequest,
): Promise<Claim> {
  const claim = await claimWith(database.sql, request, {
    allowed: Prisma.sql`CASE WHEN is_limited THEN 0 ELSE batch END`,
    rooms: Prisma.empty,
    due: dueOf(request.endpointId),
    // Reading them has locked them. A claim that a crash of PostgreSQL undoes is made again.
    free: Prisma.sql`SELECT id FROM chosen WHERE ${COMMIT_SOON}`,
  });
  if (claim.endpoint?.isLimited !== true) return claim;
  // One claim of such an endpoint after the other, so that each sees all deliveries that are in flight. The commit is
  // synchronous: an event must not be sent while a crash of PostgreSQL has undone the claim of the one before it.
  return database.transaction(async (sql) => {
    await sql.$queryRaw`SELECT 1 FROM webhook_endpoints WHERE id = ${request.endpointId} FOR NO KEY UPDATE`;
    return claimWith(sql, request, {
      allowed: allowedNow(request.endpointId),
      rooms: roomsOf(request),
      due: Prisma.sql`
        (SELECT d.id, d.due_at FROM endpoint CROSS JOIN LATERAL (${dueOf(request.endpointId)}) d WHERE ordering = 'none')
        UNION ALL ${headsOf(request)}`,
      free: Prisma.sql`SELECT id FROM webhook_deliveries
        WHERE id = ANY(ARRAY(SELECT id FROM chosen)) AND status = 'pending' FOR NO KEY UPDATE SKIP LOCKED`,
    });
  });
}

interface ClaimParts {
  /** How many deliveries may be claimed of the endpoint, whose columns and `batch` are in scope. */
  allowed: Prisma.Sql;
  /** A CTE for `due`. */
  rooms: Prisma.Sql;
  /** Selects `id` and `due_at` of candidates. PostgreSQL reads only as many as are claimed, and one more. */
  due: Prisma.Sql;
  /** Selects the ids of the chosen candidates that no other transaction has locked. */
  free: Prisma.Sql;
}

async function claimWith(
  sql: TypedSql,
  request: ClaimRequest,
  { allowed, rooms, due, free }: ClaimParts,
): Promise<Claim> {
  const { endpointId, lane, token, leaseMs, deliveriesMax } = request;
  const rows = await sql.$queryRaw<ClaimRow[]>`
    WITH RECURSIVE found AS MATERIALIZED (
      SELECT e.*, ordering <> 'none' OR max_per_second IS NOT NULL OR max_concurrent IS NOT NULL AS is_limited,
        ${SIGNING_KEY_VERSION} AS version_now,
        CASE WHEN ${lane} = 'fast' AND coalesce(slot_ms, ${SLOW_FROM_MS}::int) >= ${SLOW_FROM_MS}::int THEN 0
          WHEN slot_ms > ${SLOT_MS_MIN}::int OR slot_ms IS NULL OR max_per_second IS NOT NULL OR max_concurrent IS NOT NULL
          THEN 1 ELSE ${deliveriesMax}::int END AS batch,
        greatest(least(next_attempt_at, now() + interval '1 second'),
          now() - ${RATE_BURST_MS}::int * interval '1 millisecond') AS token_at
      FROM webhook_endpoints e WHERE id = ${endpointId} AND enabled AND deleted_at IS NULL
    ), endpoint AS MATERIALIZED (
      SELECT *, ${allowed}::int AS allowed FROM found
    ), ${rooms} due AS MATERIALIZED (
      SELECT * FROM (${due}) candidate LIMIT (SELECT CASE allowed WHEN 0 THEN 0 ELSE allowed + 1 END FROM endpoint)
    ), chosen AS MATERIALIZED (
      SELECT id FROM due LIMIT (SELECT allowed FROM endpoint)
    ), claimed AS (
      UPDATE webhook_deliveries d
      SET status = 'delivering', lease_token = ${token}::uuid,
        lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond', run_attempts = d.run_attempts + 1,
        url = coalesce(d.url, e.url), secret_version = coalesce(d.secret_version, e.version_now)
      FROM endpoint e, webhook_secrets s, events v
      WHERE d.id = ANY(ARRAY(${free})) AND d.status = 'pending' AND v.id = d.event_id
        AND s.endpoint_id = d.endpoint_id AND s.version = coalesce(d.secret_version, e.version_now)
      RETURNING d.*, s.secret_sealed, v.body, v.traceparent
    ), paced AS (
      UPDATE webhook_endpoints e
      SET next_attempt_at = token_at + (SELECT count(*) FROM claimed) * interval '1 second' / endpoint.max_per_second
      FROM endpoint
      WHERE e.id = endpoint.id AND endpoint.max_per_second IS NOT NULL AND (SELECT count(*) FROM claimed) > 0
      RETURNING e.next_attempt_at
    )
    SELECT e.slot_ms AS "slotMs", ${ENDPOINT_OPTION_FIELDS}, e.is_limited AS "isLimited",
      CASE WHEN e.max_per_second IS NOT NULL THEN
        ceil(extract(epoch FROM coalesce((SELECT next_attempt_at FROM paced), e.token_at) - now()) * 1000)::float8
      END AS "paceMs", (SELECT count(*) FROM due) > (SELECT count(*) FROM chosen) AS "isMore",
      (SELECT ceil(extract(epoch FROM due_at - now()) * 1000)::float8 FROM webhook_deliveries
       WHERE endpoint_id = ${endpointId} AND status = 'pending' AND due_at > now() ORDER BY due_at LIMIT 1) AS "nextInMs",
      c.id, c.environment_id AS "environmentId", e.id AS "endpointId", c.event_id AS "eventId",
      c.event_type AS "eventType", c.room_id AS "roomId", c.replay_count AS "replayCount",
      c.run_attempts AS "runAttempt", c.url, c.secret_version AS "secretVersion", c.secret_sealed AS "secretSealed",
      c.body, c.traceparent, c.lease_token::text AS "leaseToken", now() AS "startedAt",
      (extract(epoch FROM now() - c.run_started_at) * 1000)::float8 AS "runAgeMs",
      (extract(epoch FROM now() - c.due_at) * 1000)::float8 AS "lagMs"
    FROM endpoint e LEFT JOIN claimed c ON true ORDER BY c.due_at`;
  const [state] = rows;
  if (state === undefined) return { endpoint: null, claimed: [], isMore: false, nextInMs: null };
  const { slotMs, maxConcurrent, isLimited, paceMs, isMore, nextInMs } = state;
  const claimed = rows.filter((row) => row.id !== null);
  return { endpoint: { slotMs, maxConcurrent, isLimited, paceMs }, claimed, isMore, nextInMs };
}

/** A claimed delivery, or one row without any. Every row has the same state of the endpoint. */
type ClaimRow = ClaimedEndpoint & Pick<Claim, 'isMore' | 'nextInMs'> & (ClaimedDelivery | { id: null });

/** The oldest due deliveries. The limit is a literal: with a parameter, PostgreSQL plans for a tenth of all rows. */
const dueOf = (endpointId: string): Prisma.Sql => Prisma.sql`
  SELECT id, due_at FROM webhook_deliveries
  WHERE endpoint_id = ${endpointId} AND status = 'pending' AND due_at <= now()
  ORDER BY due_at LIMIT ${Prisma.raw(String(TURN_DELIVERIES_MAX + 1))} FOR NO KEY UPDATE SKIP LOCKED`;

/**
 * The number of attempts that the limits of an endpoint allow. The rate is a token bucket without a counter (GCRA):
 * `next_attempt_at` is when the next attempt may begin, and each claim moves it by the interval of the rate.
 */
const allowedNow = (endpointId: string): Prisma.Sql => Prisma.sql`CASE
  WHEN max_per_second IS NOT NULL AND token_at > now() THEN 0
  WHEN max_concurrent IS NOT NULL THEN least(batch, greatest(0, max_concurrent - (
    SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = ${endpointId} AND status = 'delivering')))
  ELSE batch END`;

/**
 * The CTE `room`: the rooms with open deliveries of an endpoint with an order, from a given room on and around. The
 * first row is where the walk begins. PostgreSQL walks no further than it needs.
 */
const roomsOf = ({ endpointId, afterRoomId }: ClaimRequest): Prisma.Sql => Prisma.sql`room AS (
      SELECT ${afterRoomId}::text COLLATE "C" AS room_id, false AS is_around, true AS is_beginning
      FROM endpoint WHERE ordering = 'room' AND allowed > 0
      UNION ALL
      SELECT next.room_id, next.is_around, false FROM room CROSS JOIN LATERAL (
        (SELECT room_id, room.is_around FROM webhook_deliveries
         WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} AND room_id > room.room_id ORDER BY room_id LIMIT 1)
        UNION ALL
        (SELECT room_id, true FROM webhook_deliveries
         WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} AND room_id IS NOT NULL AND NOT room.is_around
         ORDER BY room_id LIMIT 1)
        LIMIT 1
      ) next WHERE NOT next.is_around OR next.room_id <= ${afterRoomId}
    ),`;

/**
 * Of each room the first open delivery, if it is due and no delivery of the room is in flight. Replays are a line of
 * their own beside first runs. Deliveries without a room wait for nothing.
 */
const headsOf = ({ endpointId }: ClaimRequest): Prisma.Sql => Prisma.sql`
  (SELECT d.id, d.due_at FROM endpoint e JOIN webhook_deliveries d ON d.endpoint_id = e.id
   WHERE d.endpoint_id = ${endpointId} AND e.ordering = 'room' AND d.room_id IS NULL AND d.status = 'pending'
     AND d.due_at <= now() LIMIT ${Prisma.raw(String(TURN_DELIVERIES_MAX))})
  UNION ALL
  (SELECT head.id, head.due_at FROM room CROSS JOIN LATERAL (
     SELECT id, due_at FROM (${headOf(endpointId, false)} UNION ALL ${headOf(endpointId, true)}) line
     WHERE status = 'pending' AND due_at <= now() ORDER BY due_at LIMIT 1
   ) head
   WHERE NOT is_beginning AND NOT EXISTS (
     SELECT 1 FROM webhook_deliveries
     WHERE endpoint_id = ${endpointId} AND status = 'delivering' AND room_id = room.room_id))`;

const headOf = (endpointId: string, isReplay: boolean): Prisma.Sql => Prisma.sql`
  (SELECT id, due_at, status FROM webhook_deliveries
   WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} AND room_id = room.room_id AND (replay_count > 0) = ${isReplay}::boolean
   ORDER BY sequence LIMIT 1)`;
