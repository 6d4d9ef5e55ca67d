import {
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  webhookDisabled,
  type DeliveryFailureReason,
  type RecoveryStatus,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { IS_OPEN } from './delivery.sql.js';
import { DUE_ENDPOINT, type DueEndpoint } from './due-endpoints.js';
import { ENDPOINT_COLUMNS } from './endpoint.sql.js';

export type WebhookEndpointChange = Partial<
  Pick<
    WebhookEndpointState,
    | 'url'
    | 'events'
    | 'description'
    | 'enabled'
    | 'ordering'
    | 'maxPerSecond'
    | 'maxConcurrent'
    | 'standardWebhooks'
    | 'retryRejected'
  >
>;

/**
 * Adds an endpoint with the first version of its secret. Creations in one environment run one after another on the lock
 * of its row, so that they cannot exceed the limit together.
 * @returns false when the environment has reached its limit.
 */
export async function insertWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpoint: WebhookEndpointState,
  secretSealed: string,
): Promise<boolean> {
  const { environmentId } = tenant;
  await tx.$queryRaw`SELECT 1 AS locked FROM environments WHERE id = ${environmentId} FOR NO KEY UPDATE`;
  const count = await tx.webhookEndpoint.count({ where: { environmentId, deletedAt: null } });
  if (count >= ENDPOINTS_PER_ENVIRONMENT_MAX) return false;
  const { id, signingKeyVersion, createdAt } = endpoint;
  await tx.webhookEndpoint.create({ data: { ...endpoint, environmentId }, select: { id: true } });
  await tx.webhookSecret.create({ data: { endpointId: id, version: signingKeyVersion, secretSealed, createdAt } });
  return true;
}

export async function findWebhookEndpoint(
  db: Db,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState | null> {
  const [endpoint] = await db.$queryRaw<WebhookEndpointState[]>`
    SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoints e
    WHERE e.id = ${endpointId} AND e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL`;
  return endpoint ?? null;
}

/** Whether the endpoint exists or was deleted: its deliveries stay readable after the deletion. */
export async function webhookEndpointExisted(db: Db, tenant: Tenant, endpointId: string): Promise<boolean> {
  const endpoint = await db.webhookEndpoint.findFirst({
    where: { id: endpointId, environmentId: tenant.environmentId },
    select: { id: true },
  });
  return endpoint !== null;
}

/** Newest first. */
export function listWebhookEndpoints(
  db: Db,
  tenant: Tenant,
  page: { beforeId: string | null; limit: number },
): Promise<WebhookEndpointState[]> {
  const { beforeId } = page;
  return db.$queryRaw<WebhookEndpointState[]>`
    SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoints e
    WHERE e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL
      ${beforeId === null ? Prisma.empty : Prisma.sql`AND e.id < ${beforeId}`}
    ORDER BY e.id DESC LIMIT ${page.limit}`;
}

/**
 * Locks an endpoint against changes, disabling and deletion until the transaction ends.
 * @returns null when the environment has no such endpoint.
 */
export async function holdWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState | null> {
  const held = await tx.$queryRaw<unknown[]>`
    SELECT 1 AS held FROM webhook_endpoints
    WHERE id = ${endpointId} AND environment_id = ${tenant.environmentId} AND deleted_at IS NULL FOR SHARE`;
  return held.length === 0 ? null : findWebhookEndpoint(tx, tenant, endpointId);
}

/**
 * Applies the changes that differ from the stored values. A new URL makes the endpoint unproven. Enabling clears its
 * failures. It and a change of order and limits wake the deliveries that waited.
 * @returns null when the environment has no such endpoint.
 */
export async function updateWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  change: WebhookEndpointChange,
  now: Date,
): Promise<{ endpoint: WebhookEndpointState; deliveries: DueEndpoint[] } | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  const isMoved = change.url !== undefined && change.url !== endpoint.url;
  const isEnabling = change.enabled === true && !endpoint.enabled;
  const differs = (Object.keys(change) as (keyof WebhookEndpointChange)[]).some(
    (name) => JSON.stringify(change[name]) !== JSON.stringify(endpoint[name]),
  );
  if (!differs) return { endpoint, deliveries: [] };
  await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: {
      ...change,
      updatedAt: now,
      ...(isMoved ? { proven: false, failingSince: null, failingReportedSince: null, slotMs: null } : {}),
      ...(isEnabling ? { disabledReason: null, failingSince: null, failingReportedSince: null } : {}),
    },
    select: { id: true },
  });
  const updated = await findWebhookEndpoint(tx, tenant, endpointId);
  if (updated === null) return null;
  return { endpoint: updated, deliveries: updated.enabled ? await wakeHeldDeliveries(tx, endpointId) : [] };
}

/**
 * Enables or disables an endpoint for an operator. Unlike the owner's own `enabled: false`, disabling stores a reason
 * and notifies the environment's other endpoints.
 * @returns null when the environment has no such endpoint.
 */
export async function setWebhookEndpointEnabled(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  { enabled, reason }: { enabled: boolean; reason: string | null },
  now: Date,
): Promise<{ endpoint: WebhookEndpointState; deliveries: DueEndpoint[] } | null> {
  const before = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (before === null) return null;
  if (enabled) return updateWebhookEndpoint(tx, tenant, endpointId, { enabled }, now);
  const change = { enabled: false, disabledReason: reason, updatedAt: now };
  await tx.webhookEndpoint.update({ where: { id: endpointId }, data: change, select: { id: true } });
  const endpoint = { ...before, ...change };
  if (!before.enabled) return { endpoint, deliveries: [] };
  const { deliveries } = await writeEvents(tx, [webhookDisabled(tenant, endpoint, now)], { except: endpointId });
  return { endpoint, deliveries };
}

/**
 * Deletes an endpoint, ends its open deliveries and cancels its recoveries. A worker that has claimed one of the
 * deliveries has lost its lease. A concurrent transaction that still sees the endpoint may add deliveries. The workers
 * handle these: they check the endpoint with every claim.
 *
 * Locks the deliveries before their endpoint, as replays do. Deliveries that were added in between are updated only if
 * no other transaction has locked them: waiting in the reverse order could deadlock.
 * @returns false when the environment has no such endpoint.
 */
export async function deleteWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  now: Date,
): Promise<boolean> {
  if ((await findWebhookEndpoint(tx, tenant, endpointId)) === null) return false;
  await tx.$queryRaw`
    SELECT 1 AS locked FROM webhook_deliveries
    WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} ORDER BY id FOR NO KEY UPDATE`;
  const { count } = await tx.webhookEndpoint.updateMany({
    where: { id: endpointId, environmentId: tenant.environmentId, deletedAt: null },
    data: { deletedAt: now, updatedAt: now },
  });
  if (count === 0) return false;
  await tx.$executeRaw`
    UPDATE webhook_deliveries
    SET status = 'failed', failure_reason = ${'endpoint_deleted' satisfies DeliveryFailureReason}, completed_at = ${now},
      lease_token = NULL, lease_expires_at = NULL
    WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} FOR NO KEY UPDATE SKIP LOCKED
    )`;
  await tx.$executeRaw`
    UPDATE webhook_recoveries
    SET status = ${'cancelled' satisfies RecoveryStatus}, completed_at = ${now}, lease_token = NULL, lease_expires_at = NULL
    WHERE endpoint_id = ${endpointId} AND status = ${'pending' satisfies RecoveryStatus}`;
  return true;
}

/** Serialises changes of one endpoint. Transactions can still insert rows that refer to it. */
export async function lockWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState | null> {
  await tx.$queryRaw`
    SELECT 1 AS locked FROM webhook_endpoints
    WHERE id = ${endpointId} AND environment_id = ${tenant.environmentId} FOR NO KEY UPDATE`;
  return findWebhookEndpoint(tx, tenant, endpointId);
}

/** The endpoint, if it has due deliveries. */
async function wakeHeldDeliveries(tx: Prisma.TransactionClient, endpointId: string): Promise<DueEndpoint[]> {
  return tx.$queryRaw<DueEndpoint[]>`
    SELECT ${DUE_ENDPOINT} FROM webhook_endpoints e
    WHERE id = ${endpointId} AND EXISTS (
      SELECT 1 FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'pending' AND due_at <= now())`;
}
