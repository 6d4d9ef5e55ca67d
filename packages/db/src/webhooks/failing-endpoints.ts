import {
  endpointEvent,
  webhookRecovered,
  type NewEvent,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import type { DueEndpoint } from './due-endpoints.js';
import { ENDPOINT_COLUMNS, FAILS_AT_PRESENT, hasFailedFor } from './webhooks.sql.js';

export interface FailingEndpoint {
  id: string;
  environmentId: string;
  url: string;
  failingSince: Date;
}

/** Finds enabled endpoints whose attempts have all failed for at least `forMs`. */
export function findFailingEndpoints(db: TypedSql, forMs: number, limit: number): PromiseLike<FailingEndpoint[]> {
  return longestFailing(db, Prisma.sql`e.enabled AND e.deleted_at IS NULL AND ${hasFailedFor(forMs)}`, limit);
}

/**
 * Disables an endpoint if its attempts still have all failed for `forMs`, and notifies the environment's other
 * endpoints that work, in one transaction.
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
    const event = endpointEvent('webhook.disabled', endpoint, endpoint, now);
    return (await writeEvents(tx, [event], { about: endpointId })).deliveries;
  });
}

export function listEndpointsFailing(db: TypedSql, limit: number): PromiseLike<FailingEndpoint[]> {
  return longestFailing(db, FAILS_AT_PRESENT, limit);
}

function longestFailing(db: TypedSql, condition: Prisma.Sql, limit: number): PromiseLike<FailingEndpoint[]> {
  return db.$queryRaw<FailingEndpoint[]>`
    SELECT e.id, e.environment_id AS "environmentId", e.url, e.failing_since AS "failingSince" FROM webhook_endpoints e
    WHERE ${condition} ORDER BY e.failing_since LIMIT ${limit}`;
}

export async function countEndpointsFailing(db: TypedSql): Promise<number> {
  const [row] = await db.$queryRaw<[{ count: number }]>`
    SELECT count(*)::int AS count FROM webhook_endpoints e WHERE ${FAILS_AT_PRESENT}`;
  return row.count;
}

type Reported = WebhookEndpointState & Tenant & { failedSince: Date };

const IS_UNREPORTED = Prisma.sql`e.failing_reported_since IS NULL AND ${FAILS_AT_PRESENT}`;
const HAS_RECOVERED = Prisma.sql`
  e.failing_reported_since IS NOT NULL AND e.failing_since IS DISTINCT FROM e.failing_reported_since
  AND e.deleted_at IS NULL`;

/**
 * Takes the endpoints of one environment that began to fail or work again, once each over all workers, and notifies the
 * other endpoints of their environment that work, in one transaction. Reports of one endpoint alternate: a failure is
 * not reported again before the success that ended it.
 * @returns the endpoints that the caller has to log, because no other worker gets them, and the deliveries to wake.
 */
export function reportEndpoints(database: Database, now: Date) {
  return database.transaction(async (tx) => {
    const deliveries: DueEndpoint[] = [];
    const report = async (
      which: Prisma.Sql,
      reportedSince: Prisma.Sql,
      eventOf: (endpoint: Reported) => NewEvent,
    ): Promise<ReturnType<typeof reportOf>[]> => {
      const endpoints = await tx.$queryRaw<Reported[]>`
        SELECT environments.project_id AS "projectId", e.environment_id AS "environmentId",
          coalesce(e.failing_reported_since, e.failing_since) AS "failedSince", ${ENDPOINT_COLUMNS}
        FROM webhook_endpoints e JOIN environments ON environments.id = e.environment_id
        WHERE ${which} AND e.environment_id = (
          SELECT e.environment_id FROM webhook_endpoints e WHERE ${which}
          ORDER BY e.failing_since LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
        ) ORDER BY e.failing_since FOR NO KEY UPDATE OF e SKIP LOCKED`;
      // Before the update: endpoints that recover together get no reports of one another.
      for (const endpoint of endpoints)
        deliveries.push(...(await writeEvents(tx, [eventOf(endpoint)], { about: endpoint.id })).deliveries);
      const ids = endpoints.map(({ id }) => id);
      await tx.$executeRaw`
        UPDATE webhook_endpoints e SET failing_reported_since = ${reportedSince} WHERE id = ANY(${ids}::text[])`;
      return endpoints.map(reportOf);
    };
    const recovered = await report(HAS_RECOVERED, Prisma.sql`NULL`, (endpoint) =>
      webhookRecovered(endpoint, endpoint, endpoint.failedSince, now),
    );
    const failing = await report(IS_UNREPORTED, Prisma.sql`e.failing_since`, (endpoint) =>
      endpointEvent('webhook.endpoint.failing', endpoint, endpoint, now),
    );
    return { failing, recovered, deliveries };
  });
}

function reportOf({ id, environmentId, failedSince }: Reported): Omit<FailingEndpoint, 'url'> {
  return { id, environmentId, failingSince: failedSince };
}
