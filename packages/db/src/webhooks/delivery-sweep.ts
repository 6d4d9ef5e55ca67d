import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { isExhausted } from '../operations/operation.sql.js';
import { FLOOR_MAX } from '../sweeps/due.sql.js';
import { BEGINNING, type TimeRange } from '../sweeps/slices.js';
import { IS_OPEN, PENDING } from './delivery.sql.js';

export interface ExpiredLease {
  id: string;
  endpointId: string;
  /** Whether it was the run's last attempt, so that the delivery failed. */
  exhausted: boolean;
  runAttempts: number;
}

/**
 * Only rows with a lease have an expiry, so these statements do not name the status: PostgreSQL could choose an index of
 * it. Ends expired leases, whose worker died or hangs. The row is due again at once, or failed when it was the run's last
 * attempt. The log records the attempt as LEASE_EXPIRED, because its result is unknown.
 * @param range ignores leases that expired earlier or later: all by default.
 */
export function endExpiredLeases(
  db: TypedSql,
  leaseMs: number,
  limit: number,
  { from = BEGINNING, until }: Partial<TimeRange> = {},
): PromiseLike<ExpiredLease[]> {
  return db.$queryRaw<ExpiredLease[]>`
    WITH expired AS (
      SELECT id, lease_expires_at, ${isExhausted} AS exhausted FROM webhook_deliveries
      WHERE lease_expires_at <= now() AND lease_expires_at >= ${from.toISOString()}::timestamptz
        AND lease_expires_at < ${until?.toISOString() ?? 'infinity'}::timestamptz
      ORDER BY lease_expires_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ), ended AS (
      UPDATE webhook_deliveries d
      SET status = CASE WHEN exhausted THEN 'failed' ELSE 'pending' END,
        failure_reason = CASE WHEN exhausted THEN 'attempts_exhausted' END,
        completed_at = CASE WHEN exhausted THEN now() ELSE d.completed_at END,
        due_at = now(), lease_token = NULL, lease_expires_at = NULL
      FROM expired WHERE d.id = expired.id
      RETURNING d.*, exhausted, expired.lease_expires_at AS expired_at
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code)
      SELECT callplane_typeid('att'), id, replay_count, run_attempts, url, secret_version,
        expired_at - ${leaseMs}::int * interval '1 millisecond', ${leaseMs}::int, 'timeout', 'LEASE_EXPIRED'
      FROM ended
    )
    SELECT id, endpoint_id AS "endpointId", exhausted, run_attempts AS "runAttempts" FROM ended`;
}

/**
 * The time before which no lease expires, also none that a running transaction commits later: a lease begins with its
 * transaction. The next sweep begins there, so that it does not read leases that ended meanwhile
 * (docs/decisions/0039).
 * @param from the result of the call before, or a time before which all leases are known to have ended.
 */
export async function firstLeaseExpiry(db: TypedSql, from: Date): Promise<Date> {
  const [row] = await db.$queryRaw<[{ first: Date }]>`
    SELECT least(${FLOOR_MAX}, (
      SELECT lease_expires_at FROM webhook_deliveries
      WHERE lease_expires_at <= now()
        AND lease_expires_at >= ${from.toISOString()}::timestamptz
      ORDER BY lease_expires_at LIMIT 1
    )) AS first`;
  return row.first;
}

/**
 * Ends runs that are too old, also those of disabled endpoints. A delivery that is being sent is left to its worker,
 * which checks the run's age too.
 * @param from ignores runs that started earlier, as {@link firstOldRun} returned it; null ignores none. The range also
 * keeps the statement from reading what has finished.
 * @returns the ids of the deliveries.
 */
export async function expireRuns(
  db: TypedSql,
  runAgeMsMax: number,
  limit: number,
  from: Date | null = null,
): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE webhook_deliveries
    SET status = 'failed', failure_reason = 'run_expired', completed_at = now()
    WHERE id = ANY(ARRAY(
      SELECT id FROM webhook_deliveries
      WHERE ${startedBetween(from, runAgeMsMax)}
      ORDER BY run_started_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id`;
  return rows.map(({ id }) => id);
}

/** Pending deliveries, on the index `webhook_deliveries_pending_run_idx`. */
const startedBetween = (from: Date | null, runAgeMsMax: number): Prisma.Sql => Prisma.sql`
  ${PENDING} AND run_started_at >= ${(from ?? BEGINNING).toISOString()}::timestamptz
  AND run_started_at <= now() - ${runAgeMsMax}::float8 * interval '1 millisecond'`;

/**
 * The time before which no pending run started, also none that a running transaction commits later. A delivery whose
 * attempt is in flight may become pending below it: the next full check finds it.
 * @param from the result of the call before; null begins with the first run.
 */
export async function firstOldRun(db: TypedSql, runAgeMsMax: number, from: Date | null): Promise<Date> {
  const [row] = await db.$queryRaw<[{ first: Date }]>`
    SELECT least(${FLOOR_MAX} - ${runAgeMsMax}::float8 * interval '1 millisecond', (
      SELECT run_started_at FROM webhook_deliveries WHERE ${startedBetween(from, runAgeMsMax)}
      ORDER BY run_started_at LIMIT 1
    )) AS first`;
  return row.first;
}

/**
 * Ends pending deliveries of recently deleted endpoints. The deletion ends those that it sees; a concurrent event,
 * recovery step or attempt may commit a pending row after it.
 * @returns the ids of the deliveries.
 */
export async function endDeliveriesOfDeleted(db: TypedSql, deletedWithinMs: number, limit: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE webhook_deliveries
    SET status = 'failed', failure_reason = 'endpoint_deleted', completed_at = now()
    WHERE id = ANY(ARRAY(
      SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
      WHERE e.deleted_at > now() - ${deletedWithinMs}::float8 * interval '1 millisecond' AND ${IS_OPEN} AND d.status = 'pending'
      LIMIT ${limit} FOR NO KEY UPDATE OF d SKIP LOCKED
    ))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
