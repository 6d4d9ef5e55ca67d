import type { DeliveryFailureReason } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { newIdInSql } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import { isExhausted } from '../operations/operation.sql.js';
import { DUE_ENDPOINT, type DueEndpoint } from './due-endpoints.js';

export interface EndedLease extends DueEndpoint {
  id: string;
  /** Whether it was the run's last attempt, so that the delivery failed. */
  exhausted: boolean;
  runAttempts: number;
}

export function endExpiredLeases(db: TypedSql, leaseMs: number, limit: number): PromiseLike<EndedLease[]> {
  return endLeases(db, leaseMs, Prisma.sql`lease_expires_at <= now() ORDER BY lease_expires_at LIMIT ${limit}`);
}

/**
 * Ends the leases of a turn that BullMQ has handed to another worker, which takes the deliveries over.
 * @param tokens of all workers that had the turn before.
 */
export function takeOverLeases(
  db: TypedSql,
  leaseMs: number,
  { endpointId, tokens }: { endpointId: string; tokens: readonly string[] },
): PromiseLike<EndedLease[]> {
  const which = Prisma.sql`
    endpoint_id = ${endpointId} AND status = 'delivering' AND lease_token = ANY(${[...tokens]}::uuid[])`;
  return endLeases(db, leaseMs, which);
}

/**
 * The delivery is due again at once, or failed when it was the run's last attempt. The log records the attempt as
 * LEASE_EXPIRED, because its result is unknown.
 */
function endLeases(db: TypedSql, leaseMs: number, which: Prisma.Sql): PromiseLike<EndedLease[]> {
  return db.$queryRaw<EndedLease[]>`
    WITH lost AS MATERIALIZED (
      SELECT id, lease_expires_at - ${leaseMs}::int * interval '1 millisecond' AS started_at, ${isExhausted} AS exhausted
      FROM webhook_deliveries WHERE ${which} FOR NO KEY UPDATE SKIP LOCKED
    ), ended AS (
      UPDATE webhook_deliveries d
      SET status = CASE WHEN exhausted THEN 'failed' ELSE 'pending' END,
        failure_reason = CASE WHEN exhausted THEN 'attempts_exhausted' END,
        completed_at = CASE WHEN exhausted THEN now() ELSE d.completed_at END,
        due_at = now(), lease_token = NULL, lease_expires_at = NULL
      FROM lost WHERE d.id = lost.id
      RETURNING d.*, exhausted, started_at
    ), logged AS (
      INSERT INTO webhook_attempts (id, delivery_id, endpoint_id, replay_count, attempt, url, signing_key_version, started_at,
        duration_ms, outcome, error_code)
      SELECT ${newIdInSql('attempt')}, id, endpoint_id, replay_count, run_attempts, url, secret_version, started_at,
        least(${leaseMs}::int, extract(epoch FROM now() - started_at) * 1000)::int, 'timeout', 'LEASE_EXPIRED'
      FROM ended
    )
    SELECT ended.id, exhausted, ended.run_attempts AS "runAttempts", ${DUE_ENDPOINT}
    FROM ended JOIN webhook_endpoints e ON e.id = ended.endpoint_id`;
}

/**
 * Ends pending runs that are too old, also of disabled endpoints. A delivery that is being sent is left to its
 * worker, which checks the run's age too.
 * @returns the ids of the deliveries.
 */
export function expireRuns(db: TypedSql, runAgeMsMax: number, limit: number): Promise<string[]> {
  const which = Prisma.sql`
    SELECT d.id FROM webhook_deliveries d
    WHERE d.status = 'pending' AND d.run_started_at <= now() - ${runAgeMsMax}::float8 * interval '1 millisecond'
    ORDER BY d.run_started_at`;
  return failPending(db, 'run_expired', which, limit);
}

/**
 * Ends pending deliveries of recently deleted endpoints. The deletion ends the deliveries that it sees; a concurrent
 * event, recovery step or attempt may commit a pending row after it.
 * @returns the ids of the deliveries.
 */
export function endDeliveriesOfDeleted(db: TypedSql, deletedWithinMs: number, limit: number): Promise<string[]> {
  const which = Prisma.sql`
    SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d ON d.endpoint_id = e.id
    WHERE e.deleted_at > now() - ${deletedWithinMs}::float8 * interval '1 millisecond' AND d.status = 'pending'`;
  return failPending(db, 'endpoint_deleted', which, limit);
}

/** @param which selects pending deliveries `d`. */
async function failPending(
  db: TypedSql,
  reason: DeliveryFailureReason,
  which: Prisma.Sql,
  limit: number,
): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE webhook_deliveries SET status = 'failed', failure_reason = ${reason}, completed_at = now()
    WHERE id = ANY(ARRAY(${which} LIMIT ${limit} FOR NO KEY UPDATE OF d SKIP LOCKED))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
