import { newId, type Tenant, type WebhookEndpointState } from '@callplane/core';
import { insertWebhookEndpoint, type Database } from '@callplane/db';

/**
 * Adds an enabled webhook endpoint for all events. Its secret cannot be opened, so nothing is sent to it.
 * @param more fields with other values.
 * @returns its id.
 */
export async function insertTestEndpoint(
  database: Pick<Database, 'transaction'>,
  tenant: Tenant,
  more: Partial<WebhookEndpointState> = {},
): Promise<string> {
  const now = new Date();
  const endpoint: WebhookEndpointState = {
    id: newId('webhookEndpoint'),
    url: 'https://example.com/',
    events: ['*'],
    description: null,
    enabled: true,
    disabledReason: null,
    signingKeyVersion: 1,
    nextSigningKeyVersion: null,
    nextActivatesAt: null,
    ordering: 'none',
    maxPerSecond: null,
    maxConcurrent: null,
    standardWebhooks: false,
    retryRejected: false,
    failingSince: null,
    createdAt: now,
    updatedAt: now,
    ...more,
  };
  await database.transaction((tx) => insertWebhookEndpoint(tx, tenant, endpoint, 's1.k1.sealed'));
  return endpoint.id;
}
