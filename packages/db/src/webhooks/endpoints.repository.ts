import {
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  presentWebhookEndpoint,
  type DeliveryFailureReason,
  type RecoveryStatus,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import { writeEvents, type WakeableDelivery } from '../events/write-events.js';
import type { Prisma } from '../generated/client.js';

export type NewWebhookEndpoint = Pick<
  WebhookEndpointState,
  'id' | 'url' | 'events' | 'description' | 'enabled' | 'createdAt'
>;

export type WebhookEndpointChange = Partial<Pick<WebhookEndpointState, 'url' | 'events' | 'description' | 'enabled'>>;

/** How long a secret that was replaced is kept at least: a claim that has just read its version may still need it. */
const REPLACED_SECRET_KEPT_MS = 24 * 60 * 60 * 1000;
/** Held deliveries that enabling an endpoint wakes itself, so that a request never writes a whole backlog. */
const WOKEN_AT_ONCE = 500;

const SHOWN = {
  id: true,
  url: true,
  events: true,
  description: true,
  enabled: true,
  disabledReason: true,
  signingKeyVersion: true,
  createdAt: true,
  updatedAt: true,
} as const;

/**
 * Adds an endpoint with the first version of its secret. Creations in one environment queue up behind its row, so that
 * they cannot pass the limit together.
 * @returns null when the environment has as many as it may.
 */
export async function insertWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpoint: NewWebhookEndpoint,
  secretSealed: string,
): Promise<WebhookEndpointState | null> {
  const { environmentId } = tenant;
  await tx.$queryRaw`SELECT 1 AS locked FROM environments WHERE id = ${environmentId} FOR NO KEY UPDATE`;
  const count = await tx.webhookEndpoint.count({ where: { environmentId, deletedAt: null } });
  if (count >= ENDPOINTS_PER_ENVIRONMENT_MAX) return null;
  const created = await tx.webhookEndpoint.create({
    data: { ...endpoint, environmentId, signingKeyVersion: 1, updatedAt: endpoint.createdAt },
    select: SHOWN,
  });
  await tx.webhookSecret.create({
    data: { endpointId: endpoint.id, version: 1, secretSealed, createdAt: endpoint.createdAt },
  });
  return created as WebhookEndpointState;
}

export async function findWebhookEndpoint(
  db: Db,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState | null> {
  const endpoint = await db.webhookEndpoint.findFirst({
    where: { id: endpointId, environmentId: tenant.environmentId, deletedAt: null },
    select: SHOWN,
  });
  return endpoint as WebhookEndpointState | null;
}

/** Whether the environment has or had this endpoint: its deliveries can be read after it was deleted. */
export async function webhookEndpointExisted(db: Db, tenant: Tenant, endpointId: string): Promise<boolean> {
  const endpoint = await db.webhookEndpoint.findFirst({
    where: { id: endpointId, environmentId: tenant.environmentId },
    select: { id: true },
  });
  return endpoint !== null;
}

/** Newest first. */
export async function listWebhookEndpoints(
  db: Db,
  tenant: Tenant,
  page: { beforeId: string | null; limit: number },
): Promise<WebhookEndpointState[]> {
  const endpoints = await db.webhookEndpoint.findMany({
    where: {
      environmentId: tenant.environmentId,
      deletedAt: null,
      ...(page.beforeId === null ? {} : { id: { lt: page.beforeId } }),
    },
    orderBy: { id: 'desc' },
    take: page.limit,
    select: SHOWN,
  });
  return endpoints as WebhookEndpointState[];
}

/**
 * Holds an endpoint as it is until the transaction ends: nobody changes, disables or deletes it meanwhile.
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
 * Changes what differs. A new URL is unproven; enabling begins afresh and wakes what was held back.
 * @returns null when the environment has no such endpoint.
 */
export async function updateWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  change: WebhookEndpointChange,
  now: Date,
): Promise<{ endpoint: WebhookEndpointState; deliveries: WakeableDelivery[] } | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  const isMoved = change.url !== undefined && change.url !== endpoint.url;
  const isEnabling = change.enabled === true && !endpoint.enabled;
  const differs = (Object.keys(change) as (keyof WebhookEndpointChange)[]).some(
    (name) => JSON.stringify(change[name]) !== JSON.stringify(endpoint[name]),
  );
  if (!differs) return { endpoint, deliveries: [] };
  const updated = await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: {
      ...change,
      updatedAt: now,
      ...(isMoved ? { proven: false, failingSince: null } : {}),
      ...(isEnabling ? { disabledReason: null, failingSince: null } : {}),
    },
    select: SHOWN,
  });
  return {
    endpoint: updated as WebhookEndpointState,
    deliveries: isEnabling ? await wakeHeldDeliveries(tx, endpointId) : [],
  };
}

/**
 * The operator's switch. Disabling says why, which the owner's own `enabled: false` does not, and tells the
 * environment's other endpoints.
 * @returns null when the environment has no such endpoint.
 */
export async function setWebhookEndpointEnabled(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  { enabled, reason }: { enabled: boolean; reason: string | null },
  now: Date,
): Promise<{ endpoint: WebhookEndpointState; deliveries: WakeableDelivery[] } | null> {
  const before = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (before === null) return null;
  if (enabled) return updateWebhookEndpoint(tx, tenant, endpointId, { enabled }, now);
  const endpoint = (await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: { enabled: false, disabledReason: reason, updatedAt: now },
    select: SHOWN,
  })) as WebhookEndpointState;
  if (!before.enabled) return { endpoint, deliveries: [] };
  const event = { type: 'webhook.disabled' as const, data: { webhook: presentWebhookEndpoint(endpoint) } };
  const { deliveries } = await writeEvents(tx, tenant, null, [event], now, { except: endpointId });
  return { endpoint, deliveries };
}

/**
 * Gives an endpoint its next secret. Older ones go once no open run is pinned to them.
 * @param sealVersion seals a new secret for the version that it gets.
 * @returns null when the environment has no such endpoint.
 */
export async function rotateWebhookSecret(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  sealVersion: (version: number) => string,
  now: Date,
): Promise<WebhookEndpointState | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  const version = endpoint.signingKeyVersion + 1;
  await tx.webhookSecret.create({
    data: { endpointId, version, secretSealed: sealVersion(version), createdAt: now },
  });
  const replacedBefore = new Date(now.getTime() - REPLACED_SECRET_KEPT_MS);
  await tx.$executeRaw`
    DELETE FROM webhook_secrets old USING webhook_secrets next
    WHERE old.endpoint_id = ${endpointId} AND next.endpoint_id = old.endpoint_id AND next.version = old.version + 1
      AND next.created_at < ${replacedBefore}
      AND NOT EXISTS (
        SELECT 1 FROM webhook_deliveries d
        WHERE d.endpoint_id = old.endpoint_id AND d.secret_version = old.version AND d.status IN ('pending', 'delivering')
      )`;
  const rotated = await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: { signingKeyVersion: version, updatedAt: now },
    select: SHOWN,
  });
  return rotated as WebhookEndpointState;
}

/**
 * Deletes an endpoint, ends its open deliveries and cancels its recoveries. A worker that holds one of them finds its
 * lease gone. What a transaction that still saw the endpoint fans out at this very moment is left to the workers: they
 * look at the endpoint with every claim.
 *
 * Deliveries are locked before their endpoint, as replays do it. Those that came in between are taken without waiting
 * for whoever holds them: waiting in the other order could lock both up.
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
    WHERE endpoint_id = ${endpointId} AND status IN ('pending', 'delivering') ORDER BY id FOR NO KEY UPDATE`;
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
      WHERE endpoint_id = ${endpointId} AND status IN ('pending', 'delivering') FOR NO KEY UPDATE SKIP LOCKED
    )`;
  await tx.$executeRaw`
    UPDATE webhook_recoveries
    SET status = ${'cancelled' satisfies RecoveryStatus}, completed_at = ${now}, lease_token = NULL, lease_expires_at = NULL
    WHERE endpoint_id = ${endpointId} AND status = ${'pending' satisfies RecoveryStatus}`;
  return true;
}

/** Changes of one endpoint queue up here. What refers to it can still be written. */
async function lockWebhookEndpoint(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState | null> {
  await tx.$queryRaw`
    SELECT 1 AS locked FROM webhook_endpoints
    WHERE id = ${endpointId} AND environment_id = ${tenant.environmentId} FOR NO KEY UPDATE`;
  return findWebhookEndpoint(tx, tenant, endpointId);
}

/** The oldest of what was held back; a sweep wakes the rest. */
async function wakeHeldDeliveries(tx: Prisma.TransactionClient, endpointId: string): Promise<WakeableDelivery[]> {
  return tx.$queryRaw<WakeableDelivery[]>`
    UPDATE webhook_deliveries SET wake_ups = wake_ups + 1, woken_at = now()
    WHERE id IN (
      SELECT id FROM webhook_deliveries WHERE endpoint_id = ${endpointId} AND status = 'pending' AND due_at <= now()
      ORDER BY id LIMIT ${WOKEN_AT_ONCE} FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING id, replay_count AS run, run_attempts AS "runAttempts", wake_ups AS "wakeUps"`;
}
