import { REPLAYS_MAX } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { isErasureRequested } from '../participants/participant.sql.js';

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

/**
 * Whether the personal data of an event was erased, or an erasure is pending. The events table must have the alias `v`.
 */
export const isErased = Prisma.sql`(v.erased_at IS NOT NULL OR ${isErasureRequested})`;

/** The columns of the log of attempts. */
export const ATTEMPT_COLUMNS = Prisma.sql`id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
  duration_ms, outcome, error_code, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms, response_body,
  response_truncated, exchange`;

/** Joins the latest attempt, `latest`, to the deliveries `d`. */
export const LATEST_ATTEMPT = Prisma.sql`LEFT JOIN LATERAL (
      SELECT a.status_code, a.error_code FROM webhook_attempts a WHERE a.delivery_id = d.id ORDER BY a.id DESC LIMIT 1
    ) latest ON true`;
