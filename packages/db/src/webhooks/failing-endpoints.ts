import type { Database, Db } from '../client/database.js';
import { writeEvents, type WakeableDelivery } from '../events/write-events.js';

export interface FailingEndpoint {
  id: string;
  environmentId: string;
  failingSince: Date;
}

/**
 * Endpoints that have only failed for at least so long, and are not disabled yet. Their failures span that time: one
 * failure and silence since then do not count.
 */
export function findFailingEndpoints(db: Db, forMs: number, limit: number): Promise<FailingEndpoint[]> {
  return db.$queryRaw<FailingEndpoint[]>`
    SELECT id, environment_id AS "environmentId", failing_since AS "failingSince" FROM webhook_endpoints
    WHERE enabled AND deleted_at IS NULL AND failing_since <= now() - ${forMs}::float8 * interval '1 millisecond'
      AND last_failed_at >= failing_since + ${forMs}::float8 * interval '1 millisecond'
    ORDER BY failing_since LIMIT ${limit}`;
}

/**
 * Disables an endpoint that still has only failed for so long, and tells the environment's others, in one transaction.
 * @returns the deliveries of `webhook.disabled` to wake; null when it has succeeded meanwhile, or somebody was faster.
 */
export function disableFailingEndpoint(
  database: Database,
  endpointId: string,
  forMs: number,
  reason: string,
  now: Date,
): Promise<WakeableDelivery[] | null> {
  return database.transaction(async (tx) => {
    const [endpoint] = await tx.$queryRaw<DisabledEndpoint[]>`
      UPDATE webhook_endpoints e SET enabled = false, disabled_reason = ${reason}, updated_at = ${now.toISOString()}::timestamptz
      FROM environments
      WHERE e.id = ${endpointId} AND environments.id = e.environment_id AND e.enabled AND e.deleted_at IS NULL
        AND e.failing_since <= now() - ${forMs}::float8 * interval '1 millisecond'
        AND e.last_failed_at >= e.failing_since + ${forMs}::float8 * interval '1 millisecond'
      RETURNING environments.project_id AS "projectId", e.environment_id AS "environmentId", e.id, e.url, e.events,
        e.description, e.enabled, e.disabled_reason AS "disabledReason", e.signing_key_version AS "signingKeyVersion",
        e.created_at AS "createdAt", e.updated_at AS "updatedAt"`;
    if (endpoint === undefined) return null;
    const { projectId, environmentId, ...webhook } = endpoint;
    // As the API returns it.
    const event = { type: 'webhook.disabled' as const, data: { webhook } };
    const written = await writeEvents(tx, { projectId, environmentId }, null, [event], now, { except: endpointId });
    return written.deliveries;
  });
}

interface DisabledEndpoint {
  projectId: string;
  environmentId: string;
  id: string;
  url: string;
  events: string[];
  description: string | null;
  enabled: boolean;
  disabledReason: string | null;
  signingKeyVersion: number;
  createdAt: Date;
  updatedAt: Date;
}
