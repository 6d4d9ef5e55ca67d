/** Queries of `rtc` about webhooks: across tenants, and therefore by bare id. Request handlers must never call them. */
import type { DeliveryFailureReason, DeliveryStatus, EventType, RecoveryStatus, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { LATEST_ATTEMPT } from '../webhooks/delivery.sql.js';
import type { RecoveryRow } from '../webhooks/recoveries.repository.js';
import { conditions, type ListFilter } from './operator-filters.js';

export interface DeliveryListing {
  id: string;
  status: DeliveryStatus;
  failureReason: DeliveryFailureReason | null;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: EventType;
  roomId: string | null;
  replayCount: number;
  /** Attempts of this run. */
  attempts: number;
  /** Of the latest attempt over all runs. */
  lastStatusCode: number | null;
  lastErrorCode: string | null;
  dueAt: Date;
  createdAt: Date;
  completedAt: Date | null;
}

export interface DeliveryFilter extends ListFilter {
  statuses: readonly DeliveryStatus[];
  failureReason: DeliveryFailureReason | null;
  eventType: EventType | null;
  endpointId: string | null;
  roomId: string | null;
}

const DELIVERY_LISTING = Prisma.sql`id, status, failure_reason AS "failureReason", environment_id AS "environmentId",
  endpoint_id AS "endpointId", event_id AS "eventId", event_type AS "eventType", room_id AS "roomId",
  latest.status_code AS "lastStatusCode", latest.error_code AS "lastErrorCode", replay_count AS "replayCount",
  run_attempts AS attempts, due_at AS "dueAt", created_at AS "createdAt", completed_at AS "completedAt"`;

/** Newest first. */
export function listAllDeliveries(db: TypedSql, filter: DeliveryFilter): PromiseLike<DeliveryListing[]> {
  return db.$queryRaw<DeliveryListing[]>`
    SELECT ${DELIVERY_LISTING} FROM (
      SELECT * FROM webhook_deliveries
      ${conditions(filter, [
        Prisma.sql`status = ANY(${[...filter.statuses]}::text[])`,
        filter.failureReason === null ? null : Prisma.sql`failure_reason = ${filter.failureReason}`,
        filter.eventType === null ? null : Prisma.sql`event_type = ${filter.eventType}`,
        filter.endpointId === null ? null : Prisma.sql`endpoint_id = ${filter.endpointId}`,
        filter.roomId === null
          ? null
          : Prisma.sql`event_id = ANY(ARRAY(SELECT v.id FROM events v WHERE v.room_id = ${filter.roomId}))`,
      ])}
      ORDER BY id DESC LIMIT ${filter.limit}
    ) d ${LATEST_ATTEMPT} ORDER BY id DESC`;
}

export async function findDeliveryById(db: TypedSql, deliveryId: string): Promise<(DeliveryListing & Tenant) | null> {
  const [row] = await db.$queryRaw<(DeliveryListing & Tenant)[]>`
    SELECT ${DELIVERY_LISTING}, (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"
    FROM webhook_deliveries d ${LATEST_ATTEMPT} WHERE id = ${deliveryId}`;
  return row ?? null;
}

export interface EndpointListing {
  id: string;
  environmentId: string;
  url: string;
  enabled: boolean;
  disabledReason: string | null;
  /** Whether its last attempt succeeded quickly. */
  proven: boolean;
  failingSince: Date | null;
  /** Deliveries that are pending or delivering. */
  open: number;
  /** Due time of the oldest open delivery; null when there is none. */
  oldestDueAt: Date | null;
}

/** Endpoints with the oldest open delivery come first. */
export function listAllWebhookEndpoints(
  db: TypedSql,
  filter: Omit<ListFilter, 'since'>,
): PromiseLike<EndpointListing[]> {
  return db.$queryRaw<EndpointListing[]>`
    SELECT id, environment_id AS "environmentId", url, enabled, disabled_reason AS "disabledReason", proven,
      failing_since AS "failingSince", coalesce(d.open, 0)::int AS open, d.oldest AS "oldestDueAt"
    FROM webhook_endpoints
    LEFT JOIN (
      SELECT endpoint_id, count(*) AS open, min(due_at) AS oldest FROM webhook_deliveries
      WHERE status IN ('pending', 'delivering') GROUP BY endpoint_id
    ) d ON d.endpoint_id = id
    ${conditions({ ...filter, since: null }, [Prisma.sql`deleted_at IS NULL`])}
    ORDER BY d.oldest NULLS LAST, id DESC LIMIT ${filter.limit}`;
}

/** The tenant of an endpoint that is not deleted. */
export async function tenantOfWebhookEndpoint(db: TypedSql, endpointId: string): Promise<Tenant | null> {
  const [tenant] = await db.$queryRaw<Tenant[]>`
    SELECT t.id AS "environmentId", t.project_id AS "projectId"
    FROM webhook_endpoints e JOIN environments t ON t.id = e.environment_id
    WHERE e.id = ${endpointId} AND e.deleted_at IS NULL`;
  return tenant ?? null;
}

export interface RecoveryListing extends RecoveryRow {
  environmentId: string;
}

const RECOVERY_LISTING = Prisma.sql`id, environment_id AS "environmentId", endpoint_id AS "endpointId", since, until,
  dry_run AS "dryRun", include_pending AS "includePending", status, matched, replayed, woken, skipped,
  created_at AS "createdAt", completed_at AS "completedAt"`;

/** Newest first. */
export function listAllRecoveries(
  db: TypedSql,
  filter: ListFilter & { status: RecoveryStatus | null; endpointId: string | null },
): PromiseLike<RecoveryListing[]> {
  return db.$queryRaw<RecoveryListing[]>`
    SELECT ${RECOVERY_LISTING} FROM webhook_recoveries
    ${conditions(filter, [
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.endpointId === null ? null : Prisma.sql`endpoint_id = ${filter.endpointId}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function findRecoveryById(db: TypedSql, recoveryId: string): Promise<RecoveryListing | null> {
  const [row] = await db.$queryRaw<RecoveryListing[]>`
    SELECT ${RECOVERY_LISTING} FROM webhook_recoveries WHERE id = ${recoveryId}`;
  return row ?? null;
}
