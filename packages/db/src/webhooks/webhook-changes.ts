import type { TypedSql } from '../client/database.js';

/** A fingerprint of an endpoint. The endpoint has changed if the fingerprint differs from that of an earlier read. */
export interface EndpointMark {
  environmentId: string;
  id: string;
  /** Of the endpoint itself: its settings and its failures. */
  state: string;
  /** Id of its newest delivery; null without any. */
  newestDelivery: string | null;
}

/** An attempt that has ended. */
export interface EndedAttemptMark {
  environmentId: string;
  endpointId: string;
  attemptId: string;
}

export interface RecoveryMark {
  environmentId: string;
  id: string;
  state: string;
}

/** The endpoints of these environments, of which each has at most 50. */
export function markEndpoints(db: TypedSql, environmentIds: readonly string[]): PromiseLike<EndpointMark[]> {
  return db.$queryRaw<EndpointMark[]>`
    SELECT e.environment_id AS "environmentId", e.id, newest.id AS "newestDelivery",
      concat_ws('/', e.updated_at, e.enabled, e.disabled_reason, e.failing_since) AS state
    FROM webhook_endpoints e LEFT JOIN LATERAL (
      -- No plain equality, and ordered by the endpoint, too: otherwise PostgreSQL may read the primary key, past all
      -- deliveries of others.
      SELECT d.id FROM webhook_deliveries d
      WHERE d.endpoint_id = ANY(ARRAY[e.id]) ORDER BY d.endpoint_id, d.id DESC LIMIT 1
    ) newest ON true
    WHERE e.environment_id = ANY(${[...environmentIds]}::text[]) AND e.deleted_at IS NULL`;
}

/**
 * The newest attempts, of all environments, whose ids are after `from`; only those of these environments are returned.
 * Attempts get their ids when they end, and ids sort by time, so this reads a range of the primary key.
 * @returns `isComplete`: false if there are more than `limit`, also if none of them belongs to these environments.
 */
export async function markAttempts(
  db: TypedSql,
  environmentIds: readonly string[],
  { from, limit }: { from: string; limit: number },
): Promise<{ marks: EndedAttemptMark[]; isComplete: boolean }> {
  const rows = await db.$queryRaw<({ count: number } & (EndedAttemptMark | { attemptId: null }))[]>`
    WITH newest AS MATERIALIZED (
      SELECT id, delivery_id FROM webhook_attempts WHERE id > ${from} ORDER BY id DESC LIMIT ${limit + 1}
    )
    SELECT total.count, mark.*
    FROM (SELECT count(*)::int AS count FROM newest) total LEFT JOIN (
      SELECT d.environment_id AS "environmentId", d.endpoint_id AS "endpointId", n.id AS "attemptId"
      FROM newest n JOIN webhook_deliveries d ON d.id = n.delivery_id
      WHERE d.environment_id = ANY(${[...environmentIds]}::text[])
    ) mark ON true`;
  return {
    marks: rows.flatMap((row) =>
      row.attemptId === null
        ? []
        : [{ environmentId: row.environmentId, endpointId: row.endpointId, attemptId: row.attemptId }],
    ),
    isComplete: (rows[0]?.count ?? 0) <= limit,
  };
}

/** The running recoveries of these environments. */
export function markRecoveries(db: TypedSql, environmentIds: readonly string[]): PromiseLike<RecoveryMark[]> {
  return db.$queryRaw<RecoveryMark[]>`
    SELECT environment_id AS "environmentId", id, concat_ws('/', matched, replayed, skipped, woken) AS state
    FROM webhook_recoveries
    WHERE status = 'pending' AND environment_id = ANY(${[...environmentIds]}::text[])`;
}
