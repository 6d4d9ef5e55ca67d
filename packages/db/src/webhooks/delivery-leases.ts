import { ATTEMPTS_PER_RUN, newId, type AfterAttempt, type AttemptOutcome } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';

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
  /** W3C Trace Context of what caused the event. */
  traceparent: string | null;
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

/**
 * Looks at many deliveries at once. Those that are not pending, or whose endpoint takes none, are left out. (The rows are
 * found before anything is asked of them: after a burst the planner, not knowing of it yet, takes the index of open rows
 * for a shorter way, and goes through all of them.)
 */
export function glanceAtDeliveries(db: TypedSql, ids: readonly string[]): PromiseLike<DeliveryGlance[]> {
  return db.$queryRaw<DeliveryGlance[]>`
    WITH d AS MATERIALIZED (
      SELECT id, endpoint_id, due_at, run_attempts, status FROM webhook_deliveries WHERE ${isAmong('id', ids)}
    )
    SELECT d.id, d.endpoint_id AS "endpointId", ceil(extract(epoch FROM d.due_at - now()) * 1000)::int AS "dueInMs",
      e.proven, NOT e.proven AND e.failing_since IS NULL AS "isNew", d.run_attempts > 0 AS "isRetry"
    FROM d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    WHERE d.status = 'pending' AND d.run_attempts < ${ATTEMPTS_PER_RUN}::int
      AND e.enabled AND e.deleted_at IS NULL`;
}

/**
 * Takes rows that are due and free, and counts their attempts: a worker that dies right after has used one of each. The
 * run's first claim pins URL and secret. May be committed asynchronously: a claim that is lost is made again.
 * @returns those that were taken. Missing is what is not due, held by another or settled, whose endpoint is disabled or
 * deleted, and of several also what somebody has locked just now: ask again for that one alone, which waits.
 */
export function claimDeliveries(
  db: TypedSql,
  asked: readonly { deliveryId: string; leaseToken: string }[],
  leaseMs: number,
): PromiseLike<ClaimedDelivery[]> {
  const ids = asked.map(({ deliveryId }) => deliveryId);
  return db.$queryRaw<ClaimedDelivery[]>`
    WITH asked AS (
      SELECT d.id, d.status, d.due_at, d.run_attempts, new.token FROM webhook_deliveries d
      JOIN unnest(${ids}::text[], ${asked.map(({ leaseToken }) => leaseToken)}::uuid[]) AS new (id, token) ON new.id = d.id
      WHERE ${isAmong('d.id', ids)}
      FOR NO KEY UPDATE OF d ${waiting(asked.length)}
    )
    UPDATE webhook_deliveries d
    SET status = 'delivering', lease_token = asked.token,
      lease_expires_at = now() + ${leaseMs}::int * interval '1 millisecond', run_attempts = d.run_attempts + 1,
      url = coalesce(d.url, e.url), secret_version = coalesce(d.secret_version, e.signing_key_version)
    FROM asked, webhook_endpoints e, webhook_secrets s, events v
    WHERE d.id = asked.id AND asked.status = 'pending' AND asked.due_at <= now()
      AND asked.run_attempts < ${ATTEMPTS_PER_RUN}::int
      AND e.id = d.endpoint_id AND e.enabled AND e.deleted_at IS NULL
      AND s.endpoint_id = d.endpoint_id AND s.version = coalesce(d.secret_version, e.signing_key_version)
      AND v.id = d.event_id
    RETURNING d.id, d.environment_id AS "environmentId", d.endpoint_id AS "endpointId", d.event_id AS "eventId",
      d.event_type AS "eventType", d.replay_count AS "replayCount", d.run_attempts AS "runAttempt", d.url,
      d.secret_version AS "secretVersion", s.secret_sealed AS "secretSealed", v.body, v.traceparent,
      d.lease_token::text AS "leaseToken", now() AS "claimedAt",
      (extract(epoch FROM now() - d.run_started_at) * 1000)::float8 AS "runAgeMs",
      (extract(epoch FROM now() - d.due_at) * 1000)::float8 AS "lagMs"`;
}

/** Takes one row; see {@link claimDeliveries}. Null when it cannot be taken. */
export async function claimDelivery(
  db: TypedSql,
  deliveryId: string,
  leaseToken: string,
  leaseMs: number,
): Promise<ClaimedDelivery | null> {
  const [claimed] = await claimDeliveries(db, [{ deliveryId, leaseToken }], leaseMs);
  return claimed ?? null;
}

/** An attempt that has ended, and what follows from it. */
export interface EndedAttempt {
  claim: Pick<ClaimedDelivery, 'id' | 'leaseToken' | 'url' | 'secretVersion' | 'claimedAt'>;
  attempt: AttemptRecord;
  after: AfterAttempt;
  /** Whether it leaves its endpoint proven. */
  proves: boolean;
}

/** That an endpoint goes on failing is written down no more often than this, in seconds. */
const FAILURE_NOTED_SECONDS = 60;

/**
 * Settles attempts, all in one statement: the log, the deliveries, and the endpoints' standing where it changes. The
 * token decides, not the lease's time: as long as it stands in the row nobody else has taken the delivery, and an
 * answer that came late is still the answer. A sweep that ends the lease removes the token.
 *
 * An endpoint's row is skipped while another holds it (SKIP LOCKED), because whoever deletes an endpoint locks it
 * before its deliveries; the next attempt tells its standing again.
 * @param ended in the order in which they ended.
 * @returns what a wake-up needs of each row. Missing is what has lost its lease: of that nothing was written. Of several
 * also what somebody has locked just now: settle that one alone, which waits.
 */
export function settleDeliveries(db: TypedSql, ended: readonly EndedAttempt[]): PromiseLike<WakeableDelivery[]> {
  const rows = ended.map(({ claim, attempt, after, proves }, position) => ({
    position,
    id: claim.id,
    token: claim.leaseToken,
    status: after.status,
    reason: after.status === 'failed' ? after.reason : null,
    delay_ms: after.status === 'pending' ? Math.round(after.delayMs) : null,
    proves,
    attempt_id: newId('attempt'),
    url: claim.url,
    version: claim.secretVersion,
    started_at: claim.claimedAt.toISOString(),
    duration_ms: Math.round(attempt.durationMs),
    outcome: attempt.outcome,
    error_code: attempt.errorCode,
    status_code: attempt.statusCode,
    address: attempt.address,
    dns_ms: rounded(attempt.timings.dnsMs),
    connect_ms: rounded(attempt.timings.connectMs),
    tls_ms: rounded(attempt.timings.tlsMs),
    first_byte_ms: rounded(attempt.timings.firstByteMs),
    response_body: attempt.responseBody,
    response_truncated: attempt.responseTruncated,
  }));
  return db.$queryRaw<WakeableDelivery[]>`
    WITH ended AS (
      SELECT new.* FROM webhook_deliveries d
      JOIN json_to_recordset(${JSON.stringify(rows)}::json) AS new (position int, id text, token uuid, status text,
        reason text, delay_ms int, proves boolean, attempt_id text, url text, version int, started_at timestamptz,
        duration_ms int, outcome text, error_code text, status_code int, address text, dns_ms int, connect_ms int,
        tls_ms int, first_byte_ms int, response_body text, response_truncated boolean) ON new.id = d.id
      WHERE ${isAmong(
        'd.id',
        rows.map(({ id }) => id),
      )} AND d.lease_token = new.token
      FOR NO KEY UPDATE OF d ${waiting(ended.length)}
    ), settled AS (
      UPDATE webhook_deliveries d
      SET status = ended.status, failure_reason = ended.reason, lease_token = NULL, lease_expires_at = NULL,
        completed_at = CASE WHEN ended.delay_ms IS NULL THEN now() ELSE d.completed_at END,
        due_at = CASE WHEN ended.delay_ms IS NULL THEN d.due_at ELSE now() + ended.delay_ms * interval '1 millisecond' END,
        woken_at = CASE WHEN ended.delay_ms IS NULL THEN d.woken_at ELSE now() + ended.delay_ms * interval '1 millisecond' END,
        wake_ups = 1
      FROM ended WHERE d.id = ended.id AND d.lease_token = ended.token
      RETURNING d.endpoint_id, d.replay_count, d.run_attempts, d.wake_ups, ended.*
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
        response_body, response_truncated)
      SELECT attempt_id, id, replay_count, run_attempts, url, version, started_at, duration_ms, outcome, error_code,
        status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms, response_body, response_truncated
      FROM settled
    ), told AS (
      SELECT DISTINCT ON (endpoint_id) endpoint_id, proves, outcome = 'success' AS succeeded,
        bool_or(outcome = 'success') OVER (PARTITION BY endpoint_id) AS any_succeeded
      FROM settled ORDER BY endpoint_id, position DESC
    ), standing AS (
      SELECT e.id, told.proves, told.succeeded, told.any_succeeded
      FROM told JOIN webhook_endpoints e ON e.id = told.endpoint_id
      WHERE e.proven <> told.proves OR (e.failing_since IS NULL) <> told.succeeded
        OR (NOT told.succeeded AND (told.any_succeeded OR coalesce(e.last_failed_at, '-infinity')
          < now() - ${FAILURE_NOTED_SECONDS}::int * interval '1 second'))
      FOR NO KEY UPDATE OF e SKIP LOCKED
    ), noted AS (
      UPDATE webhook_endpoints e
      SET proven = standing.proves,
        failing_since = CASE WHEN standing.succeeded THEN NULL WHEN standing.any_succeeded THEN now()
          ELSE coalesce(e.failing_since, now()) END,
        last_failed_at = CASE WHEN standing.succeeded THEN NULL ELSE now() END
      FROM standing WHERE e.id = standing.id
    )
    SELECT id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps" FROM settled`;
}

/**
 * Whether the row is one of these. Through a sub-select, because the plan then costs the same for however many: else
 * PostgreSQL finds that the plan for ten would be dearer than that for these, and plans anew each time, which takes it
 * twice as long as the statement itself.
 */
function isAmong(column: 'id' | 'd.id', ids: readonly string[]): Prisma.Sql {
  return Prisma.sql`${Prisma.raw(column)} = ANY(ARRAY(SELECT unnest(${ids}::text[])))`;
}

/** A statement about several rows waits for nobody, so it holds up none of them and can be part of no deadlock. */
function waiting(rows: number): Prisma.Sql {
  return rows > 1 ? Prisma.sql`SKIP LOCKED` : Prisma.empty;
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
