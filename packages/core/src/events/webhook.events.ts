import type { Tenant } from '../api-keys/scopes.js';
import { presentWebhookEndpoint, type WebhookEndpointState } from '../webhooks/endpoint.presenter.js';
import type { EventType, NewEvent } from './event.js';

/** The service or an operator has disabled an endpoint. */
export function webhookDisabled(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.disabled', tenant, endpoint, now);
}

/** The owner of an endpoint asked for a test delivery. */
export function webhookTest(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.test', tenant, endpoint, now);
}

/** Endpoints belong to no room, so their events have no sequence. */
function endpointEvent(type: EventType, tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  const data = { webhook: presentWebhookEndpoint(endpoint) };
  return { type, tenant, roomId: null, participantId: null, createdAt: now, data };
}
