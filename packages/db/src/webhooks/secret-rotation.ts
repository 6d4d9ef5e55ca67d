import type { Tenant, WebhookEndpointState } from '@callplane/core';
import type { Prisma } from '../generated/client.js';
import { findWebhookEndpoint, lockWebhookEndpoint } from './endpoints.repository.js';

/**
 * An endpoint has at most one rotation that waits. PostgreSQL's clock activates it: every statement that reads the
 * version of new runs takes the next one from `next_activates_at` on (`SIGNING_KEY_VERSION`). No process has to act then.
 */
export interface SecretRotation {
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
