import {
  ENDPOINT_OPTIONS,
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  endpointEvent,
  HUNG_FROM_MS,
  type DeliveryFailureReason,
  type EndpointOptions,
  type RecoveryStatus,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import { optionColumns, optionParameters } from '../client/options.sql.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { lockEnvironment } from '../tenants/tenants.repository.js';
import type { DueEndpoint } from './due-endpoints.js';
import { ENDPOINT_COLUMNS, IS_OPEN } from './webhooks.sql.js';

type WebhookEndpointChange = Partial<
  Pick<WebhookEndpointState, 'url' | 'events' | 'description' | 'enabled'> & EndpointOptions
>;

/** @returns false when the environment has reached its limit. */
export async function insertWebhookEndpoint(
  tx: TypedSql,
  { environmentId }: Tenant,
  endpoint: WebhookEndpointState,
  secretSealed: string,
): Promise<boolean> {
  const { id, url, description, enabled } = endpoint;
  const createdAt = endpoint.createdAt.toISOString();
  await lockEnvironment(tx, environmentId);
  // A statement of its own, whose snapshot has the endpoints that others have committed meanwhile.
  const created = await tx.$executeRaw`
    WITH endpoint AS (
      INSERT INTO webhook_endpoints (id, environment_id, url, events, description, enabled, signing_key_version,
        ${optionColumns(ENDPOINT_OPTIONS)}, created_at, updated_at)
      SELECT ${id}, ${environmentId}, ${url}, ${endpoint.events}::text[], ${description}, ${enabled}::boolean,
        ${endpoint.signingKeyVersion}::int, ${optionParameters(ENDPOINT_OPTIONS, endpoint)}, ${createdAt}::timestamptz,
        ${createdAt}::timestamptz
      WHERE (SELECT count(*) FROM webhook_endpoints WHERE environment_id = ${environmentId} AND deleted_at IS NULL)
        < ${ENDPOINTS_PER_ENVIRONMENT_MAX}::int
      RETURNING id, signing_key_version, created_at
    )
    INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
    SELECT id, signing_key_version, ${secretSealed}, created_at FROM endpoint`;
  return created > 0;
}

export async function findWebhookEndpoint(
  db: TypedSql,
  tenant: Tenant,
  endpointId: string,
  lock = Prisma.empty,
): Promise<WebhookEndpointState | null> {
  const [endpoint] = await db.$queryRaw<WebhookEndpointState[]>`
    SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoints e
    WHERE e.id = ${endpointId} AND e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL ${lock}`;
  return endpoint ?? null;
}

/** Serialises its changes. Transactions can still insert rows that refer to it. */
export function lockWebhookEndpoint(tx: TypedSql, tenant: Tenant, endpointId: string) {
  return findWebhookEndpoint(tx, tenant, endpointId, Prisma.sql`FOR NO KEY UPDATE`);
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
  db: TypedSql,
  tenant: Tenant,
  page: { beforeId: string | null; limit: number },
): PromiseLike<WebhookEndpointState[]> {
  const { beforeId } = page;
  return db.$queryRaw<WebhookEndpointState[]>`
    SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoints e
    WHERE e.environment_id = ${tenant.environmentId} AND e.deleted_at IS NULL
      ${beforeId === null ? Prisma.empty : Prisma.sql`AND e.id < ${beforeId}`}
    ORDER BY e.id DESC LIMIT ${page.limit}`;
}

/**
 * A new URL clears the failures of the endpoint, and goes to the slow lane until it has answered. It does not make the
 * endpoint one that was never tried: turns of these go first, and a tenant could go first with every change. Enabling
 * clears the failures, too.
 * @returns the deliveries to wake: they waited for this change. Null when the environment has no such endpoint.
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
  if (isMoved) {
    const slotMs = { lt: HUNG_FROM_MS };
    await tx.webhookEndpoint.updateMany({ where: { id: endpointId, slotMs }, data: { slotMs: HUNG_FROM_MS } });
  }
  const { slotMs } = await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: {
      ...change,
      updatedAt: now,
      ...(isMoved ? { failingSince: null, failingReportedSince: null } : {}),
      ...(isEnabling ? { disabledReason: null, failingSince: null, failingReportedSince: null } : {}),
    },
    select: { slotMs: true },
  });
  const updated = await findWebhookEndpoint(tx, tenant, endpointId);
  if (updated === null) return null;
  const wake = { endpointId, environmentId: tenant.environmentId, slotMs };
  return { endpoint: updated, deliveries: updated.enabled ? [wake] : [] };
}

/**
 * Enables or disables an endpoint for an operator. Unlike the owner's own `enabled: false`, disabling stores a reason
 * and notifies the environment's other endpoints that work.
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
  const event = endpointEvent('webhook.disabled', tenant, endpoint, now);
  const { deliveries } = await writeEvents(tx, [event], { about: endpointId });
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
  await tx.webhookRecovery.updateMany({
    where: { endpointId, status: 'pending' satisfies RecoveryStatus },
    data: { status: 'cancelled' satisfies RecoveryStatus, completedAt: now, leaseToken: null, leaseExpiresAt: null },
  });
  return true;
}

/**
 * An endpoint has at most one rotation that waits. PostgreSQL's clock activates it: every statement that reads the
 * version of new runs takes the next one from `next_activates_at` on (`SIGNING_KEY_VERSION`). No process has to act then.
 */
interface SecretRotation {
  /** Seals the new secret for its version number. */
  sealVersion: (version: number) => string;
  /** 0 signs new runs with the new secret at once. */
  activateInSeconds: number;
}

/**
 * Gives an endpoint its next secret. A sweep deletes older ones that no open run is pinned to. The number of a cancelled
 * version is not given again, because a receiver may hold its secret.
 * @returns null when the environment has no such endpoint; a conflict when a rotation waits.
 */
export async function rotateWebhookSecret(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  { sealVersion, activateInSeconds }: SecretRotation,
  now: Date,
): Promise<WebhookEndpointState | 'SECRET_ROTATION_WAITS' | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  if (endpoint.nextSigningKeyVersion !== null) return 'SECRET_ROTATION_WAITS';
  const { _max } = await tx.webhookSecret.aggregate({ where: { endpointId }, _max: { version: true } });
  const version = Math.max(_max.version ?? 0, endpoint.signingKeyVersion) + 1;
  await tx.webhookSecret.create({
    data: { endpointId, version, secretSealed: sealVersion(version), createdAt: now },
  });
  // An earlier rotation whose time has come is replaced: its version becomes the stored one.
  const [current, next] = activateInSeconds === 0 ? [version, null] : ([endpoint.signingKeyVersion, version] as const);
  await tx.$executeRaw`
    UPDATE webhook_endpoints
    SET signing_key_version = ${current}::int, next_signing_key_version = ${next}::int,
      next_activates_at = CASE WHEN ${next}::int IS NOT NULL THEN now() + ${activateInSeconds}::int * interval '1 second' END,
      updated_at = ${now.toISOString()}::timestamptz
    WHERE id = ${endpointId}`;
  return findWebhookEndpoint(tx, tenant, endpointId);
}

/**
 * Ends the rotation that waits: `activate` signs new runs with its secret at once, `cancel` never does.
 * @returns null when the environment has no such endpoint; a conflict when no rotation waits, as after its activation.
 */
export async function endSecretRotation(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  endpointId: string,
  end: 'activate' | 'cancel',
  now: Date,
): Promise<WebhookEndpointState | 'NO_SECRET_ROTATION' | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  if (endpoint.nextSigningKeyVersion === null) return 'NO_SECRET_ROTATION';
  const signingKeyVersion = end === 'activate' ? endpoint.nextSigningKeyVersion : endpoint.signingKeyVersion;
  await tx.webhookEndpoint.update({
    where: { id: endpointId },
    data: { signingKeyVersion, nextSigningKeyVersion: null, nextActivatesAt: null, updatedAt: now },
    select: { id: true },
  });
  return findWebhookEndpoint(tx, tenant, endpointId);
}
