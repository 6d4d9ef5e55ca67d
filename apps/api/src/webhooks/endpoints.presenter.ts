import { formatTimestamp } from '@callplane/core';
import type { WebhookEndpointRow } from '@callplane/db';

/** A webhook endpoint as the API returns it; never with a secret. */
export function presentEndpoint(endpoint: WebhookEndpointRow) {
  return {
    id: endpoint.id,
    url: endpoint.url,
    events: endpoint.events,
    description: endpoint.description,
    enabled: endpoint.enabled,
    disabledReason: endpoint.disabledReason,
    signingKeyVersion: endpoint.signingKeyVersion,
    createdAt: formatTimestamp(endpoint.createdAt),
    updatedAt: formatTimestamp(endpoint.updatedAt),
  };
}
