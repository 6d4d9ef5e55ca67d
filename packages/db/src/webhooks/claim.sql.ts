import { Prisma } from '../generated/client.js';
import { PARKED_AT, PENDING } from './delivery.sql.js';

/**
 * Claims the rows of the CTE `due` and counts an attempt of each delivery. The run's first claim pins URL and secret.
 * `due` has the columns position, id, url, signing_key_version, standard_webhooks and in_order; the claimed rows have
 * those of {@link CLAIMED_COLUMNS}.
 *
 * The ids come from an array, so that PostgreSQL reads the rows by their key although it overestimates their number.
 */
export const claimRows = (leaseMs: number): Prisma.Sql => Prisma.sql`UPDATE webhook_deliveries d
      SET status = 'delivering', lease_token = gen_random_uuid(),
        lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond', run_attempts = d.run_attempts + 1,
        url = coalesce(d.url, due.url), secret_version = coalesce(d.secret_version, due.signing_key_version)
      FROM due, webhook_secrets s, events v
      WHERE d.id = ANY(ARRAY(SELECT id FROM due)) AND d.id = due.id AND d.status = 'pending'
        AND s.endpoint_id = d.endpoint_id AND s.version = coalesce(d.secret_version, due.signing_key_version) AND v.id = d.event_id
      RETURNING due.position, d.id, d.environment_id, d.event_id, d.event_type, d.replay_count, d.run_attempts, d.url,
        d.secret_version, s.secret_sealed, v.body, v.traceparent, d.lease_token, d.run_started_at, d.due_at,
        due.standard_webhooks, CASE WHEN due.in_order THEN d.room_id END AS room_id`;

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
