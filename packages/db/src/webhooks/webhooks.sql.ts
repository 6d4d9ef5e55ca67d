import {
  ENDPOINT_OPTIONS,
  ENDPOINT_FAILS_AFTER_MS,
  ENDPOINT_FAILURE_RECENT_MS,
  REPLAYS_MAX,
  SLOW_FROM_MS,
} from '@callplane/core';
import { optionFields } from '../client/options.sql.js';
import { Prisma } from '../generated/client.js';

/** Whether a delivery is open: the condition of the partial index `webhook_deliveries_line_idx`. */
export const IS_OPEN = Prisma.sql`status IN ('pending', 'delivering')`;

/** Starts a new run of a finished delivery: the assignments of an `UPDATE webhook_deliveries`. */
export const START_RUN = Prisma.sql`status = 'pending', failure_reason = NULL, completed_at = NULL,
  replay_count = replay_count + 1, run_attempts = 0, run_started_at = now(), url = NULL, secret_version = NULL,
  due_at = now()`;

/**
 * Brings the next attempt of a pending delivery forward to now: the assignment of an `UPDATE webhook_deliveries`. One
 * that is due already keeps its place before younger ones.
 */
export const BRING_FORWARD = Prisma.sql`due_at = least(due_at, now())`;

/** Whether a delivery may be replayed again, like `decideReplay` of core. */
export const hasReplaysLeft = Prisma.sql`replay_count < ${REPLAYS_MAX}::int`;

/** Whether an erasure was made or is pending. The events table must have the alias `v`. */
export const isErased = Prisma.sql`(v.erased_at IS NOT NULL
  OR EXISTS (SELECT 1 FROM participant_erasures x WHERE x.participant_id = v.participant_id))`;

/** The version of the secret that signs the runs which begin now, of the endpoint `e`. */
export const SIGNING_KEY_VERSION = Prisma.sql`CASE WHEN e.next_activates_at <= now() THEN e.next_signing_key_version
  ELSE e.signing_key_version END`;

const WAITS = Prisma.sql`e.next_activates_at > now()`;

/** The columns of the options of an endpoint `e`. */
export const ENDPOINT_OPTION_FIELDS = optionFields(ENDPOINT_OPTIONS, 'e');

/** The columns of a `WebhookEndpointState`, of the endpoint `e`. A next secret shows only until its activation. */
export const ENDPOINT_COLUMNS = Prisma.sql`e.id, e.url, e.events, e.description, e.enabled,
  e.disabled_reason AS "disabledReason", ${SIGNING_KEY_VERSION} AS "signingKeyVersion",
  CASE WHEN ${WAITS} THEN e.next_signing_key_version END AS "nextSigningKeyVersion",
  CASE WHEN ${WAITS} THEN e.next_activates_at END AS "nextActivatesAt", ${ENDPOINT_OPTION_FIELDS},
  e.failing_since AS "failingSince", e.created_at AS "createdAt", e.updated_at AS "updatedAt"`;

// `slot_ms`: the expected duration of the next attempt, written when it doubles, halves or changes the lane.
// `failing_since`: all attempts have failed since. Workers choose the lane by the first; a sweep disables endpoints
// that keep failing.

/** Minimum interval between two updates of the failure time of a failing endpoint, in seconds. */
const FAILURE_NOTED_SECONDS = 60;

const milliseconds = (ms: number): Prisma.Sql => Prisma.sql`${ms}::float8 * interval '1 millisecond'`;

/**
 * Whether all attempts of an endpoint have failed for `forMs`. The failures must span that time: a single failure
 * followed by silence does not count. The endpoints table must have the alias `e`.
 */
export const hasFailedFor = (forMs: number): Prisma.Sql => Prisma.sql`(
  e.failing_since <= now() - ${milliseconds(forMs)} AND e.last_failed_at >= e.failing_since + ${milliseconds(forMs)})`;

/** More than one attempt has failed since the last success, and the latest one within 8 hours. */
const HAS_FAILED_LATELY = Prisma.sql`(
  e.last_failed_at > e.failing_since AND e.last_failed_at > now() - ${milliseconds(ENDPOINT_FAILURE_RECENT_MS)})`;

/**
 * Whether an endpoint fails at present: all attempts have failed for 15 minutes, more than one of them, and the latest one
 * within 8 hours. The endpoints table must have the alias `e`.
 */
export const FAILS_AT_PRESENT = Prisma.sql`(
  e.enabled AND e.deleted_at IS NULL AND e.failing_since <= now() - ${milliseconds(ENDPOINT_FAILS_AFTER_MS)}
  AND ${HAS_FAILED_LATELY})`;

/** Whether an endpoint `e` is neither failing nor reported as failing. */
export const WORKS = Prisma.sql`(${HAS_FAILED_LATELY} IS NOT TRUE AND e.failing_reported_since IS NULL)`;

/**
 * The end of a statement whose CTE `settled` has just settled attempts: writes the rows of their endpoints that change.
 * `settled` has the columns endpoint_id, position, outcome and slot_ms (`settleDeliveries` in
 * delivery-leases.ts makes it); the highest position is the latest attempt.
 *
 * An endpoint's row is skipped while another transaction has locked it (SKIP LOCKED), because deleting an endpoint
 * locks it before its deliveries. The next attempt writes its state again.
 */
export const NOTE_STANDING = Prisma.sql`latest AS (
    SELECT DISTINCT ON (endpoint_id) endpoint_id, slot_ms, outcome = 'success' AS succeeded,
      bool_or(outcome = 'success') OVER (PARTITION BY endpoint_id) AS any_succeeded
    FROM settled ORDER BY endpoint_id, position DESC
  ), changed AS (
    SELECT e.id, latest.slot_ms, latest.succeeded, latest.any_succeeded
    FROM latest JOIN webhook_endpoints e ON e.id = latest.endpoint_id
    WHERE e.slot_ms IS NULL OR latest.slot_ms >= 2 * e.slot_ms
      OR 2 * latest.slot_ms <= e.slot_ms
      OR (latest.slot_ms >= ${SLOW_FROM_MS}::int) <> (e.slot_ms >= ${SLOW_FROM_MS}::int)
      OR (e.failing_since IS NULL) <> latest.succeeded
      OR (NOT latest.succeeded AND (latest.any_succeeded OR coalesce(e.last_failed_at, '-infinity')
        < now() - ${FAILURE_NOTED_SECONDS}::int * interval '1 second'))
    FOR NO KEY UPDATE OF e SKIP LOCKED
  ), updated AS (
    UPDATE webhook_endpoints e
    SET slot_ms = changed.slot_ms,
      failing_since = CASE WHEN changed.succeeded THEN NULL WHEN changed.any_succeeded THEN now()
        ELSE coalesce(e.failing_since, now()) END,
      last_failed_at = CASE WHEN changed.succeeded THEN NULL ELSE now() END
    FROM changed WHERE e.id = changed.id
  )`;
