import { ATTEMPTS_PER_RUN, newId, type AfterAttempt, type AttemptOutcome } from '@callplane/core';
import type { Db } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';

/** What a worker needs to know before it decides when to claim a delivery. */
export interface DeliveryGlance {
  id: string;
  endpointId: string;
  /** In how many milliseconds it is due; 0 or less when it is. */
  dueInMs: number;
  /** The endpoint's last attempt succeeded quickly. */
  proven: boolean;
  /** The endpoint was never tried. */
  isNew: boolean;
  /** Not the first attempt of its run. */
  isRetry: boolean;
}

/** A row that this worker holds. All times are PostgreSQL's, so that workers need not agree on the time. */
export interface ClaimedDelivery {
  id: string;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  replayCount: number;
  runAttempt: number;
  /** Pinned for the run, as is the version of the secret. */
  url: string;
  secretVersion: number;
  secretSealed: string;
  /** The event's bytes. */
  body: string;
  /** Fencing token: whoever comes back late, after another took the row, writes nothing. */
  leaseToken: string;
  claimedAt: Date;
  runAgeMs: number;
  /** How long after it was due the claim came. */
  lagMs: number;
}

/** What an attempt was, for its log. */
export interface AttemptRecord {
  durationMs: number;
  outcome: AttemptOutcome;
  errorCode: string | null;
  statusCode: number | null;
  address: string | null;
  timings: {
    dnsMs: number | null;
    connectMs: number | null;
    tlsMs: number | null;
    firstByteMs: number | null;
  };
  responseBody: string | null;
  responseTruncated: boolean;
}

/** Looks at many deliveries at once. Those that are not pending, or whose endpoint takes none, are left out. */
export function glanceAtDeliveries(db: Db, ids: readonly string[]): Promise<DeliveryGlance[]> {
  return db.$queryRaw<DeliveryGlance[]>`
    SELECT d.id, d.endpoint_id AS "endpointId", ceil(extract(epoch FROM d.due_at - now()) * 1000)::int AS "dueInMs",
      e.proven, NOT e.proven AND e.failing_since IS NULL AS "isNew", d.run_attempts > 0 AS "isRetry"
    FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    WHERE d.id = ANY(${ids}::text[]) AND d.status = 'pending' AND d.run_attempts < ${ATTEMPTS_PER_RUN}
      AND e.enabled AND e.deleted_at IS NULL`;
}

/**
 * Takes a row that is due and free, and counts the attempt: a worker that dies right after has used one. The run's
 * first claim pins URL and secret. May be committed asynchronously: a claim that is lost is made again.
 * @returns null when the row is not due, held by another or settled, or its endpoint is disabled or deleted.
 */
export async function claimDelivery(
  db: Db,
  deliveryId: string,
  leaseToken: string,
  leaseMs: number,
): Promise<ClaimedDelivery | null> {
  const [claimed] = await db.$queryRaw<ClaimedDelivery[]>`
    UPDATE webhook_deliveries d
    SET status = 'delivering', lease_token = ${leaseToken}::uuid,
      lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond', run_attempts = d.run_attempts + 1,
      url = coalesce(d.url, e.url), secret_version = coalesce(d.secret_version, e.signing_key_version)
    FROM webhook_endpoints e, webhook_secrets s, events v
    WHERE d.id = ${deliveryId} AND d.status = 'pending' AND d.due_at <= now() AND d.run_attempts < ${ATTEMPTS_PER_RUN}
      AND e.id = d.endpoint_id AND e.enabled AND e.deleted_at IS NULL
      AND s.endpoint_id = d.endpoint_id AND s.version = coalesce(d.secret_version, e.signing_key_version)
      AND v.id = d.event_id
    RETURNING d.id, d.environment_id AS "environmentId", d.endpoint_id AS "endpointId", d.event_id AS "eventId",
      d.event_type AS "eventType", d.replay_count AS "replayCount", d.run_attempts AS "runAttempt", d.url,
      d.secret_version AS "secretVersion", s.secret_sealed AS "secretSealed", v.body,
      d.lease_token::text AS "leaseToken", now() AS "claimedAt",
      (extract(epoch FROM now() - d.run_started_at) * 1000)::float8 AS "runAgeMs",
      (extract(epoch FROM now() - d.due_at) * 1000)::float8 AS "lagMs"`;
  return claimed ?? null;
}

/**
 * Settles an attempt, all in one statement: the log, the delivery, and the endpoint's standing where it changes. The
 * token decides, not the lease's time: as long as it stands in the row nobody else has taken the delivery, and an
 * answer that came late is still the answer. A sweep that ends the lease removes the token.
 *
 * The endpoint's row is skipped while another holds it (SKIP LOCKED), because whoever deletes an endpoint locks it
 * before its deliveries; the next attempt tells its standing again.
 * @returns what a wake-up needs of the row; null when the lease is lost, and then nothing is written.
 */
export async function settleDelivery(
  db: Db,
  claim: Pick<ClaimedDelivery, 'id' | 'leaseToken' | 'url' | 'secretVersion' | 'claimedAt'>,
  attempt: AttemptRecord,
  after: AfterAttempt,
  proves: boolean,
): Promise<WakeableDelivery | null> {
  const delayMs = after.status === 'pending' ? after.delayMs : null;
  const reason = after.status === 'failed' ? after.reason : null;
  const succeeded = attempt.outcome === 'success';
  const { timings } = attempt;
  const [row] = await db.$queryRaw<WakeableDelivery[]>`
    WITH settled AS (
      UPDATE webhook_deliveries
      SET status = ${after.status}, failure_reason = ${reason}::text, lease_token = NULL, lease_expires_at = NULL,
        completed_at = CASE WHEN ${delayMs}::int IS NULL THEN now() ELSE completed_at END,
        due_at = CASE WHEN ${delayMs}::int IS NULL THEN due_at ELSE now() + ${delayMs}::int * interval '1 millisecond' END,
        woken_at = CASE WHEN ${delayMs}::int IS NULL THEN woken_at ELSE now() + ${delayMs}::int * interval '1 millisecond' END,
        wake_ups = 1
      WHERE id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid
      RETURNING id, endpoint_id, replay_count, run_attempts, wake_ups
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
        response_body, response_truncated)
      SELECT ${newId('attempt')}, id, replay_count, run_attempts, ${claim.url}, ${claim.secretVersion}::int,
        ${claim.claimedAt.toISOString()}::timestamptz, ${Math.round(attempt.durationMs)}::int, ${attempt.outcome},
        ${attempt.errorCode}::text, ${attempt.statusCode}::int, ${attempt.address}::text, ${rounded(timings.dnsMs)}::int,
        ${rounded(timings.connectMs)}::int, ${rounded(timings.tlsMs)}::int, ${rounded(timings.firstByteMs)}::int,
        ${attempt.responseBody}::text, ${attempt.responseTruncated}
      FROM settled
    ), standing AS (
      UPDATE webhook_endpoints
      SET proven = ${proves}, failing_since = CASE WHEN ${succeeded} THEN NULL ELSE coalesce(failing_since, now()) END
      WHERE id = (
        SELECT e.id FROM webhook_endpoints e JOIN settled ON settled.endpoint_id = e.id
        WHERE e.proven <> ${proves} OR (e.failing_since IS NULL) <> ${succeeded}
        FOR NO KEY UPDATE OF e SKIP LOCKED
      )
    )
    SELECT id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps" FROM settled`;
  return row ?? null;
}

/** Gives a claimed row back untried: the attempt does not count. For failures that are this side's own. */
export async function releaseDelivery(
  db: Db,
  claim: Pick<ClaimedDelivery, 'id' | 'leaseToken'>,
  delayMs: number,
): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_deliveries
    SET status = 'pending', run_attempts = run_attempts - 1, lease_token = NULL, lease_expires_at = NULL,
      due_at = now() + ${delayMs}::int * interval '1 millisecond', woken_at = now()
    WHERE id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid`;
}

function rounded(milliseconds: number | null): number | null {
  return milliseconds === null ? null : Math.round(milliseconds);
}
