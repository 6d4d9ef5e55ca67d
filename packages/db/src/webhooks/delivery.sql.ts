import { REPLAYS_MAX } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { isErasureRequested } from '../participants/participant.sql.js';

/**
 * The exact condition of the partial indexes of pending deliveries `webhook_deliveries_due_idx` (endpoint, retry or
 * not, due time) and `webhook_deliveries_pending_run_idx`. It is written so that no other index matches it. With
 * `status = 'pending'`, PostgreSQL could choose the index of all open deliveries when statistics are bad. It would then
 * read the backlogs of other tenants, or sort the whole backlog of an endpoint.
 */
export const PENDING = Prisma.sql`(status || '') = 'pending'`;

/**
 * The same for `webhook_deliveries_due_time_idx` (due time), for searches without an endpoint. If it matched the others,
 * PostgreSQL could search for the first delivery of an endpoint in the dead entries of all endpoints.
 */
export const PENDING_BY_TIME = Prisma.sql`('' || status) = 'pending'`;

/** Whether the claims of the endpoint `e` go through its gate: it has an order or a limit. */
export const IS_GATED = Prisma.sql`(e.ordering <> 'none' OR e.max_per_second IS NOT NULL OR e.max_concurrent IS NOT NULL)`;

/**
 * Due time of a parked delivery: it waits for an earlier one of its line, and is in no claim's way. A far date and no
 * `infinity`, with which neither clients nor subtractions can work.
 */
export const PARKED_AT = Prisma.sql`'9999-12-31 00:00:00+00'::timestamptz`;

/** Whether a delivery is parked: the exact condition of the partial index `webhook_deliveries_parked_idx`. */
export const IS_PARKED = Prisma.sql`(${PENDING} AND due_at = ${PARKED_AT})`;

/**
 * The exact condition of the partial index `webhook_deliveries_line_idx` (endpoint, room, replay or not, sequence),
 * which contains only open deliveries. Like PENDING, it is written so that no other index matches it.
 */
export const IS_OPEN = Prisma.sql`lower(status) IN ('pending', 'delivering')`;

/** Starts a new run of a finished delivery: the assignments of an `UPDATE webhook_deliveries`. */
export const START_RUN = Prisma.sql`status = 'pending', failure_reason = NULL, completed_at = NULL,
  replay_count = replay_count + 1, run_attempts = 0, run_started_at = now(), url = NULL, secret_version = NULL,
  due_at = now()`;

/**
 * Brings the next attempt of a pending delivery forward to now: the assignments of an `UPDATE webhook_deliveries`. One
 * that is due already keeps its place before younger ones, and a parked one stays parked: it follows the delivery that
 * it waits for.
 */
export const BRING_FORWARD = Prisma.sql`due_at = CASE WHEN due_at = ${PARKED_AT} THEN due_at ELSE least(due_at, now()) END`;

/** Whether a delivery may be replayed again, like `decideReplay` of core. */
export const hasReplaysLeft = Prisma.sql`replay_count < ${REPLAYS_MAX}::int`;

/**
 * Whether the personal data of an event was erased, or an erasure is pending. The events table must have the alias `v`.
 */
export const isErased = Prisma.sql`(v.erased_at IS NOT NULL OR ${isErasureRequested})`;

/** The columns of the log of attempts. */
export const ATTEMPT_COLUMNS = Prisma.sql`id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
  duration_ms, outcome, error_code, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms, response_body,
  response_truncated, exchange`;
