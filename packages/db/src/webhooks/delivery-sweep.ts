import { ATTEMPTS_PER_RUN } from '@callplane/core';
import type { Db } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';

/**
 * Finds rows that are due and that nothing has woken for a while, and marks them as woken. Several sweeps at once
 * share the rows. Those of disabled endpoints are held back until they are enabled.
 * @param quietMs how long ago the last wake-up must lie.
 */
export function takeUnwokenDeliveries(db: Db, quietMs: number, limit: number): Promise<WakeableDelivery[]> {
  return db.$queryRaw<WakeableDelivery[]>`
    UPDATE webhook_deliveries SET woken_at = now(), wake_ups = wake_ups + 1
    WHERE id = ANY(ARRAY(
      SELECT d.id FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
      WHERE d.status = 'pending' AND d.due_at <= now()
        AND d.woken_at <= now() - ${quietMs}::int * interval '1 millisecond' AND d.run_attempts < ${ATTEMPTS_PER_RUN}
        AND e.enabled AND e.deleted_at IS NULL
      ORDER BY d.due_at LIMIT ${limit} FOR NO KEY UPDATE OF d SKIP LOCKED
    ))
    RETURNING id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
}

/** Tells the sweep that these wait in a worker's memory: waking them again would only double their jobs. */
export async function touchDeliveries(db: Db, ids: readonly string[]): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_deliveries SET woken_at = now()
    WHERE id = ANY(ARRAY(
      SELECT id FROM webhook_deliveries WHERE id = ANY(${ids}::text[]) AND status = 'pending'
      FOR NO KEY UPDATE SKIP LOCKED
    ))`;
}

export interface ExpiredLease {
  id: string;
  endpointId: string;
  /** That was the run's last attempt, so the delivery failed. */
  exhausted: boolean;
  run: number;
  runAttempts: number;
  wakeUps: number;
}

/**
 * Ends leases that ran out: their worker died or hangs. The row is due again at once, or failed when that was the run's
 * last attempt; the log gets a line for the attempt of which nothing is known.
 */
export function endExpiredLeases(db: Db, leaseMs: number, limit: number): Promise<ExpiredLease[]> {
  return db.$queryRaw<ExpiredLease[]>`
    WITH expired AS (
      SELECT id, lease_expires_at FROM webhook_deliveries
      WHERE status = 'delivering' AND lease_expires_at <= now()
      ORDER BY lease_expires_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ), ended AS (
      UPDATE webhook_deliveries d
      SET status = CASE WHEN d.run_attempts >= ${ATTEMPTS_PER_RUN} THEN 'failed' ELSE 'pending' END,
        failure_reason = CASE WHEN d.run_attempts >= ${ATTEMPTS_PER_RUN} THEN 'attempts_exhausted' END,
        completed_at = CASE WHEN d.run_attempts >= ${ATTEMPTS_PER_RUN} THEN now() ELSE d.completed_at END,
        due_at = now(), woken_at = now(), wake_ups = 1, lease_token = NULL, lease_expires_at = NULL
      FROM expired WHERE d.id = expired.id
      RETURNING d.*, expired.lease_expires_at AS expired_at
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code)
      SELECT callplane_typeid('att'), id, replay_count, run_attempts, url, secret_version,
        expired_at - ${leaseMs}::int * interval '1 millisecond', ${leaseMs}::int, 'timeout', 'LEASE_EXPIRED'
      FROM ended
    )
    SELECT id, endpoint_id AS "endpointId", status = 'failed' AS exhausted, replay_count AS run,
      run_attempts AS "runAttempts", wake_ups AS "wakeUps" FROM ended`;
}

/**
 * Ends runs that are too old, also those of disabled endpoints. What is being delivered at this moment is left to its
 * worker, who knows the run's age too.
 * @returns the ids of the deliveries.
 */
export async function expireRuns(db: Db, runAgeMsMax: number, limit: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE webhook_deliveries
    SET status = 'failed', failure_reason = 'run_expired', completed_at = now()
    WHERE id = ANY(ARRAY(
      SELECT id FROM webhook_deliveries
      WHERE status = 'pending' AND run_started_at <= now() - ${runAgeMsMax}::float8 * interval '1 millisecond'
      ORDER BY run_started_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING id`;
  return rows.map(({ id }) => id);
}

/**
 * Ends what still waits for endpoints that were removed lately. The removal ends what it sees; an event, a recovery's
 * step or an attempt that was under way meanwhile may commit a pending row after it.
 * @returns the ids of the deliveries.
 */
export async function endDeliveriesOfRemoved(db: Db, removedWithinMs: number, limit: number): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE webhook_deliveries
    SET status = 'failed', failure_reason = 'endpoint_deleted', completed_at = now()
    WHERE id = ANY(ARRAY(
      SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
      WHERE e.deleted_at > now() - ${removedWithinMs}::float8 * interval '1 millisecond' AND d.status = 'pending'
      LIMIT ${limit} FOR NO KEY UPDATE OF d SKIP LOCKED
    ))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
