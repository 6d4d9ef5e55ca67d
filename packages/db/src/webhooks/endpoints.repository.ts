import {
  ENDPOINT_OPTIONS,
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  endpointEvent,
  HUNG_FROM_MS,
  sameJson,
  type DeliveryFailureReason,
  type EndpointOptions,
  type RecoveryStatus,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { optionColumns, optionParameters } from '../client/options.sql.js';
import { writeEvents } from '../events/write-events.js';
import { Prisma } from '../generated/client.js';
import { lockEnvironment } from '../api-keys/api-keys.repository.js';
import type { DueEndpoint } from './due-endpoints.js';
import { ENDPOINT_COLUMNS, IS_OPEN } from './webhooks.sql.js';

/** The deliveries have waited for the change: the caller wakes them. */
type EndpointUpdate = { endpoint: WebhookEndpointState; deliveries: DueEndpoint[] };

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
export async function webhookEndpointExisted(db: Db, { environmentId }: Tenant, endpointId: string): Promise<boolean> {
  return (await db.webhookEndpoint.count({ where: { id: endpointId, environmentId } })) > 0;
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
 * @returns null when the environment has no such endpoint.
 */
export function updateWebhookEndpoint(
  database: Database,
  tenant: Tenant,
  endpointId: string,
  change: WebhookEndpointChange,
  now: Date,
): Promise<EndpointUpdate | null> {
  return database.transaction((tx) => update(tx, tenant, endpointId, change, now));
}

async function update(
  tx: TypedSql,
  tenant: Tenant,
  endpointId: string,
  change: WebhookEndpointChange,
  now: Date,
): Promise<EndpointUpdate | null> {
  const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
  if (endpoint === null) return null;
  const differs = (Object.keys(change) as (keyof WebhookEndpointChange)[]).some(
    (name) => !sameJson(change[name], endpoint[name]),
  );
  if (!differs) return { endpoint, deliveries: [] };
  const after = { ...endpoint, ...change };
  const isMoved = after.url !== endpoint.url;
  const isEnabling = after.enabled && !endpoint.enabled;
  const [written] = await tx.$queryRaw<(WebhookEndpointState & Pick<DueEndpoint, 'slotMs'>)[]>`
    UPDATE webhook_endpoints e SET url = ${after.url}, events = ${after.events}::text[],
      description = ${after.description}, enabled = ${after.enabled}::boolean,
      (${optionColumns(ENDPOINT_OPTIONS)}) = ROW(${optionParameters(ENDPOINT_OPTIONS, after)}),
      updated_at = ${now.toISOString()}::timestamptz,
      slot_ms = CASE WHEN ${isMoved} AND e.slot_ms < ${HUNG_FROM_MS}::int THEN ${HUNG_FROM_MS}::int ELSE e.slot_ms END,
      failing_since = CASE WHEN NOT ${isMoved || isEnabling} THEN e.failing_since END,
      failing_reported_since = CASE WHEN NOT ${isMoved || isEnabling} THEN e.failing_reported_since END,
      disabled_reason = CASE WHEN NOT ${isEnabling} THEN e.disabled_reason END
    WHERE e.id = ${endpointId} RETURNING ${ENDPOINT_COLUMNS}, e.slot_ms AS "slotMs"`;
  if (written === undefined) return null;
  const { slotMs, ...updated } = written;
  const wake = { endpointId, environmentId: tenant.environmentId, slotMs };
  return { endpoint: updated, deliveries: updated.enabled ? [wake] : [] };
}

/**
 * Enables or disables an endpoint for an operator. Unlike the owner's own `enabled: false`, disabling stores a reason
 * and notifies the environment's other endpoints that work.
 * @returns null when the environment has no such endpoint.
 */
export function setWebhookEndpointEnabled(
  database: Database,
  tenant: Tenant,
  endpointId: string,
  { enabled, reason }: { enabled: boolean; reason: string | null },
  now: Date,
): Promise<EndpointUpdate | null> {
  return database.transaction(async (tx) => {
    const before = await lockWebhookEndpoint(tx, tenant, endpointId);
    if (before === null) return null;
    if (enabled) return update(tx, tenant, endpointId, { enabled }, now);
    await tx.$executeRaw`
      UPDATE webhook_endpoints
      SET enabled = false, disabled_reason = ${reason}, updated_at = ${now.toISOString()}::timestamptz
      WHERE id = ${endpointId}`;
    const endpoint = { ...before, enabled, disabledReason: reason, updatedAt: now };
    if (!before.enabled) return { endpoint, deliveries: [] };
    const event = endpointEvent('webhook.disabled', tenant, endpoint, now);
    const { deliveries } = await writeEvents(tx, [event], { about: endpointId });
    return { endpoint, deliveries };
  });
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
export function deleteWebhookEndpoint(
  database: Database,
  { environmentId }: Tenant,
  endpointId: string,
  now: Date,
): Promise<boolean> {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  return database.transaction(async (tx) => {
    await tx.$queryRaw`
      SELECT 1 AS locked FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND environment_id = ${environmentId} AND ${IS_OPEN}
      ORDER BY id FOR NO KEY UPDATE`;
    const deleted = await tx.$executeRaw`
      UPDATE webhook_endpoints SET deleted_at = ${at}, updated_at = ${at}
      WHERE id = ${endpointId} AND environment_id = ${environmentId} AND deleted_at IS NULL`;
    if (deleted === 0) return false;
    await tx.$executeRaw`
      WITH cancelled AS (
        UPDATE webhook_recoveries
        SET status = ${'cancelled' satisfies RecoveryStatus}, completed_at = ${at}, lease_token = NULL,
          lease_expires_at = NULL
        WHERE endpoint_id = ${endpointId} AND status = ${'pending' satisfies RecoveryStatus}
      )
      UPDATE webhook_deliveries
      SET status = 'failed', failure_reason = ${'endpoint_deleted' satisfies DeliveryFailureReason},
        completed_at = ${at}, lease_token = NULL, lease_expires_at = NULL
      WHERE id IN (
        SELECT id FROM webhook_deliveries
        WHERE endpoint_id = ${endpointId} AND ${IS_OPEN} FOR NO KEY UPDATE SKIP LOCKED
      )`;
    return true;
  });
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
export function rotateWebhookSecret(
  database: Database,
  tenant: Tenant,
  endpointId: string,
  { sealVersion, activateInSeconds }: SecretRotation,
  now: Date,
): Promise<WebhookEndpointState | 'SECRET_ROTATION_WAITS' | null> {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  return database.transaction(async (tx) => {
    const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
    if (endpoint === null) return null;
    if (endpoint.nextSigningKeyVersion !== null) return 'SECRET_ROTATION_WAITS';
    const [newest] = await tx.$queryRaw<{ version: number }[]>`
      SELECT version FROM webhook_secrets WHERE endpoint_id = ${endpointId} ORDER BY version DESC LIMIT 1`;
    const version = Math.max(newest?.version ?? 0, endpoint.signingKeyVersion) + 1;
    // An earlier rotation whose time has come is replaced: its version becomes the stored one.
    const [current, next] = activateInSeconds === 0 ? [version, null] : [endpoint.signingKeyVersion, version];
    const [rotated] = await tx.$queryRaw<WebhookEndpointState[]>`
      WITH secret AS (
        INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
        VALUES (${endpointId}, ${version}::int, ${sealVersion(version)}, ${at})
      )
      UPDATE webhook_endpoints e
      SET signing_key_version = ${current}::int, next_signing_key_version = ${next}::int,
        next_activates_at = CASE WHEN ${next}::int IS NOT NULL
          THEN now() + ${activateInSeconds}::int * interval '1 second' END, updated_at = ${at}
      WHERE e.id = ${endpointId} RETURNING ${ENDPOINT_COLUMNS}`;
    return rotated ?? null;
  });
}

/**
 * Ends the rotation that waits: `activate` signs new runs with its secret at once, `cancel` never does.
 * @returns null when the environment has no such endpoint; a conflict when no rotation waits, as after its activation.
 */
export function endSecretRotation(
  database: Database,
  tenant: Tenant,
  endpointId: string,
  end: 'activate' | 'cancel',
  now: Date,
): Promise<WebhookEndpointState | 'NO_SECRET_ROTATION' | null> {
  return database.transaction(async (tx) => {
    const endpoint = await lockWebhookEndpoint(tx, tenant, endpointId);
    if (endpoint === null) return null;
    if (endpoint.nextSigningKeyVersion === null) return 'NO_SECRET_ROTATION';
    const version = end === 'activate' ? endpoint.nextSigningKeyVersion : endpoint.signingKeyVersion;
    const [ended] = await tx.$queryRaw<WebhookEndpointState[]>`
      UPDATE webhook_endpoints e
      SET signing_key_version = ${version}::int, next_signing_key_version = NULL, next_activates_at = NULL,
        updated_at = ${now.toISOString()}::timestamptz
      WHERE e.id = ${endpointId} RETURNING ${ENDPOINT_COLUMNS}`;
    return ended ?? null;
  });
}
