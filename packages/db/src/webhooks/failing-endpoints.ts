import { webhookDisabled, type Tenant, type WebhookEndpointState } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import type { DueEndpoint } from './due-endpoints.js';
import { ENDPOINT_COLUMNS } from './endpoint.sql.js';
import { failsAtPresent, hasFailedFor } from './endpoint-standing.sql.js';

export interface FailingEndpoint {
  id: string;
  environmentId: string;
  failingSince: Date;
}

/**
 * Finds enabled endpoints whose attempts have all failed for at least `forMs`.
 */
export function findFailingEndpoints(db: TypedSql, forMs: number, limit: number): PromiseLike<FailingEndpoint[]> {
  return db.$queryRaw<FailingEndpoint[]>`
    SELECT id, environment_id AS "environmentId", failing_since AS "failingSince" FROM webhook_endpoints e
    WHERE enabled AND deleted_at IS NULL AND ${hasFailedFor(forMs)}
    ORDER BY failing_since LIMIT ${limit}`;
}

/**
 * Disables an endpoint if its attempts still have all failed for `forMs`, and notifies the environment's other
 * endpoints, in one transaction.
 * @returns the deliveries of `webhook.disabled` to wake; null when the endpoint has succeeded meanwhile or is disabled
 * already.
 */
export function disableFailingEndpoint(
  database: Database,
  endpointId: string,
  forMs: number,
  reason: string,
  now: Date,
): Promise<DueEndpoint[] | null> {
  return database.transaction(async (tx) => {
    const [endpoint] = await tx.$queryRaw<(WebhookEndpointState & Tenant)[]>`
      UPDATE webhook_endpoints e SET enabled = false, disabled_reason = ${reason}, updated_at = ${now.toISOString()}::timestamptz
      FROM environments
      WHERE e.id = ${endpointId} AND environments.id = e.environment_id AND e.enabled AND e.deleted_at IS NULL
        AND ${hasFailedFor(forMs)}
      RETURNING environments.project_id AS "projectId", e.environment_id AS "environmentId", ${ENDPOINT_COLUMNS}`;
    if (endpoint === undefined) return null;
    return (await writeEvents(tx, [webhookDisabled(endpoint, endpoint, now)], { except: endpointId })).deliveries;
  });
}

/**
 * Counts the enabled endpoints that fail at present: all attempts have failed for `forMs`, and the latest one is at most
 * `recentMs` old.
 */
export async function countEndpointsFailing(db: TypedSql, forMs: number, recentMs: number): Promise<number> {
  const [row] = await db.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM webhook_endpoints e WHERE ${failsAtPresent(forMs, recentMs)}`;
  return row.count;
}

/** The endpoints whose failure or recovery the caller has to log: no other worker gets them. */
export interface EndpointReports {
  failing: FailingEndpoint[];
  /** `failingSince` of the series that has ended. */
  recovered: FailingEndpoint[];
}

/** Takes the endpoints that fail at present and those that work again since, once each over all workers. */
export async function takeEndpointReports(
  db: TypedSql,
  { forMs, recentMs, limit }: { forMs: number; recentMs: number; limit: number },
): Promise<EndpointReports> {
  const failing = await db.$queryRaw<FailingEndpoint[]>`
    UPDATE webhook_endpoints e SET failing_reported_since = e.failing_since
    WHERE e.id = ANY(ARRAY(
      SELECT e.id FROM webhook_endpoints e
      WHERE ${failsAtPresent(forMs, recentMs)} AND e.failing_reported_since IS DISTINCT FROM e.failing_since
      ORDER BY e.failing_since LIMIT ${limit} FOR NO KEY UPDATE OF e SKIP LOCKED
    ))
    RETURNING e.id, e.environment_id AS "environmentId", e.failing_since AS "failingSince"`;
  const recovered = await db.$queryRaw<FailingEndpoint[]>`
    WITH worked AS (
      SELECT e.id, e.failing_reported_since FROM webhook_endpoints e
      WHERE e.failing_reported_since IS NOT NULL AND e.failing_since IS NULL AND e.deleted_at IS NULL
      LIMIT ${limit} FOR NO KEY UPDATE OF e SKIP LOCKED
    )
    UPDATE webhook_endpoints e SET failing_reported_since = NULL FROM worked WHERE e.id = worked.id
    RETURNING e.id, e.environment_id AS "environmentId", worked.failing_reported_since AS "failingSince"`;
  return { failing, recovered };
}
