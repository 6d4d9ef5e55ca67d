/** Reads of `rtc` about webhooks: across tenants, and therefore by bare id. Request handlers must never call them. */
import {
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type RecoveryStatus,
  type Tenant,
} from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import type { Prisma } from '../generated/client.js';
import { RECOVERY_FIELDS } from '../webhooks/recoveries.repository.js';
import { newestWith, OF_TENANT, toTenant, type ListFilter } from './operator-lists.js';
import { FAILS_AT_PRESENT } from '../webhooks/webhooks.sql.js';

export interface DeliveryFilter extends ListFilter {
  statuses: readonly DeliveryStatus[];
  failureReason: DeliveryFailureReason | null;
  eventType: EventType | null;
  endpointId: string | null;
  roomId: string | null;
}

const DELIVERY = {
  omit: { sequence: true, runStartedAt: true, url: true, secretVersion: true, leaseToken: true, leaseExpiresAt: true },
  include: { attempts: { select: { statusCode: true, errorCode: true }, orderBy: { id: 'desc' }, take: 1 } },
} as const;

export type DeliveryListing = ReturnType<typeof toDelivery>;

/** Newest first. */
export async function listAllDeliveries(db: Db, filter: DeliveryFilter): Promise<DeliveryListing[]> {
  const { failureReason, eventType, endpointId } = filter;
  const { where, ...newest } = newestWith(filter, { failureReason, eventType, endpointId });
  const rows = await db.webhookDelivery.findMany({
    ...newest,
    ...DELIVERY,
    where: {
      ...where,
      status: { in: [...filter.statuses] },
      ...(filter.roomId === null ? {} : { event: { roomId: filter.roomId } }),
    },
  });
  return rows.map(toDelivery);
}

export async function findDeliveryById(db: Db, deliveryId: string): Promise<(DeliveryListing & Tenant) | null> {
  const found = await db.webhookDelivery.findUnique({
    where: { id: deliveryId },
    ...DELIVERY,
    include: { ...DELIVERY.include, endpoint: { select: { environment: { select: { projectId: true } } } } },
  });
  if (found === null) return null;
  const { endpoint, ...row } = found;
  return { ...toDelivery(row), ...endpoint.environment };
}

/** `attempts` counts this run; the last answer belongs to the latest attempt over all runs. */
function toDelivery(delivery: Prisma.WebhookDeliveryGetPayload<typeof DELIVERY>) {
  const {
    runAttempts,
    attempts: [latest],
    ...row
  } = delivery;
  const answer = { lastStatusCode: latest?.statusCode ?? null, lastErrorCode: latest?.errorCode ?? null };
  return { ...row, ...answer, attempts: runAttempts };
}

export interface EndpointListing {
  id: string;
  environmentId: string;
  url: string;
  enabled: boolean;
  disabledReason: string | null;
  /** Whether all its attempts have failed for 15 minutes, and the latest one within eight hours. */
  failing: boolean;
  failingSince: Date | null;
  open: number;
  oldestDueAt: Date | null;
}

export function listAllWebhookEndpoints(
  db: TypedSql,
  { environmentId, limit }: Omit<ListFilter, 'since'>,
): PromiseLike<EndpointListing[]> {
  return db.$queryRaw<EndpointListing[]>`
    SELECT id, environment_id AS "environmentId", url, enabled, disabled_reason AS "disabledReason",
      coalesce(${FAILS_AT_PRESENT}, false) AS failing, failing_since AS "failingSince", coalesce(d.open, 0)::int AS open, d.oldest AS "oldestDueAt"
    FROM webhook_endpoints e
    LEFT JOIN (
      SELECT endpoint_id, count(*) AS open, min(due_at) AS oldest FROM webhook_deliveries
      WHERE status IN ('pending', 'delivering') GROUP BY endpoint_id
    ) d ON d.endpoint_id = id
    WHERE deleted_at IS NULL AND (${environmentId}::text IS NULL OR environment_id = ${environmentId}::text)
    ORDER BY d.oldest NULLS LAST, id DESC LIMIT ${limit}`;
}

export async function tenantOfWebhookEndpoint(db: Db, endpointId: string): Promise<Tenant | null> {
  const where = { id: endpointId, deletedAt: null };
  return toTenant(await db.webhookEndpoint.findUnique({ where, select: OF_TENANT }));
}

const RECOVERY = { ...RECOVERY_FIELDS, environmentId: true } as const;
export type RecoveryListing = Awaited<ReturnType<typeof listAllRecoveries>>[number];

/** Newest first. */
export function listAllRecoveries(
  db: Db,
  filter: ListFilter & { status: RecoveryStatus | null; endpointId: string | null },
) {
  const { status, endpointId } = filter;
  return db.webhookRecovery.findMany({ ...newestWith(filter, { status, endpointId }), select: RECOVERY });
}

export function findRecoveryById(db: Db, recoveryId: string) {
  return db.webhookRecovery.findUnique({ where: { id: recoveryId }, select: RECOVERY });
}
