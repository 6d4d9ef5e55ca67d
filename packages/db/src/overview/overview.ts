import { firstIdAt, type DeliveryStatus, type Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { firstTransactionSince } from '../events/events.repository.js';
import { Prisma } from '../generated/client.js';
import { FAILS_AT_PRESENT } from '../webhooks/webhooks.sql.js';

export interface SlotCount {
  slot: number;
  count: number;
}

export interface OverviewEndpoint {
  id: string;
  url: string;
  enabled: boolean;
  /** Whether all its attempts have failed for 15 minutes, and the latest one within eight hours. */
  failing: boolean;
  failingSince: Date | null;
  lastFailedAt: Date | null;
  /** When its oldest delivery is due that waits for an attempt; null when none waits. */
  oldestDueAt: Date | null;
}

export interface Span {
  since: Date;
  slotSeconds: number;
}

/**
 * Counts the participants that are connected, and the rooms in which they are.
 * @param of null for all tenants.
 * @param max of participants; null counts all.
 */
export async function countLive(
  db: TypedSql,
  of: Tenant | null,
  max: number | null,
): Promise<{ rooms: number; participants: number }> {
  const ofTenant = of === null ? Prisma.empty : Prisma.sql`AND environment_id = ${of.environmentId}`;
  const [row] = await db.$queryRaw<[{ rooms: number; participants: number }]>`
    SELECT count(DISTINCT room_id)::int AS rooms, count(*)::int AS participants FROM (
      SELECT room_id FROM participant_sessions WHERE ended_at IS NULL AND NOT waiting ${ofTenant} LIMIT ${max}
    ) live`;
  return row;
}

export function countJoins(
  db: TypedSql,
  tenant: Tenant,
  { since, slotSeconds }: Span,
  max: number,
): PromiseLike<SlotCount[]> {
  return db.$queryRaw<SlotCount[]>`
    SELECT floor(extract(epoch FROM created_at - ${since.toISOString()}::timestamptz) / ${slotSeconds}::int)::int AS slot,
      count(*)::int AS count
    FROM (
      SELECT created_at FROM events
      WHERE environment_id = ${tenant.environmentId} AND type = 'participant.joined'
        AND transaction_id >= ${firstTransactionSince(tenant, since)}
      ORDER BY transaction_id DESC, id DESC LIMIT ${max}
    ) joined
    WHERE created_at >= ${since.toISOString()}::timestamptz GROUP BY 1`;
}

/** The endpoints of an environment, of which there are at most 50. */
export function listOverviewEndpoints(db: TypedSql, { environmentId }: Tenant): PromiseLike<OverviewEndpoint[]> {
  return db.$queryRaw<OverviewEndpoint[]>`
    SELECT e.id, e.url, e.enabled, coalesce(${FAILS_AT_PRESENT}, false) AS failing, e.failing_since AS "failingSince", e.last_failed_at AS "lastFailedAt", (
      SELECT min(oldest.due_at) FROM (VALUES (false), (true)) kind (is_retry) CROSS JOIN LATERAL (
        -- The expressions repeat webhook_deliveries_due_idx.
        SELECT d.due_at FROM webhook_deliveries d
        WHERE d.endpoint_id = e.id AND (d.run_attempts > 0) = kind.is_retry AND (d.status || '') = 'pending'
          AND d.due_at <= now()
        ORDER BY d.due_at LIMIT 1
      ) oldest
    ) AS "oldestDueAt"
    FROM webhook_endpoints e WHERE e.environment_id = ${environmentId} AND e.deleted_at IS NULL
    ORDER BY e.id`;
}

export interface DeliveryCount extends SlotCount {
  endpointId: string;
  status: DeliveryStatus;
  unsuccessful: number;
}

/** Counts the deliveries that were created in a time span, of each endpoint the newest `max` ones. */
export function countDeliveries(
  db: TypedSql,
  { environmentId }: Tenant,
  { since, slotSeconds }: Span,
  max: number,
): PromiseLike<DeliveryCount[]> {
  return db.$queryRaw<DeliveryCount[]>`
    SELECT e.id AS "endpointId", sent.status,
      floor(extract(epoch FROM sent.created_at - ${since.toISOString()}::timestamptz) / ${slotSeconds}::int)::int AS slot,
      count(*)::int AS count, count(*) FILTER (
        WHERE sent.status <> 'succeeded' AND sent.run_attempts > (sent.status = 'delivering')::int
      )::int AS unsuccessful
    FROM webhook_endpoints e CROSS JOIN LATERAL (
      SELECT d.status, d.run_attempts, d.created_at FROM webhook_deliveries d
      WHERE d.endpoint_id = e.id AND d.id >= ${firstIdAt('delivery', since)}
      ORDER BY d.id DESC LIMIT ${max}
    ) sent
    WHERE e.environment_id = ${environmentId} AND e.deleted_at IS NULL
      AND sent.created_at >= ${since.toISOString()}::timestamptz
    GROUP BY 1, 2, 3`;
}
