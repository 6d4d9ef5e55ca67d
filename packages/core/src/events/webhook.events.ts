import type { Tenant } from '../api-keys/scopes.js';
import { formatTimestamp } from '../time.js';
import { presentWebhookEndpoint, type WebhookEndpointState } from '../webhooks/endpoint.presenter.js';
import type { EventType, NewEvent } from './event.js';

/** The service or an operator has disabled an endpoint. */
export function webhookDisabled(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.disabled', tenant, endpoint, now);
}

/** All attempts of an endpoint have failed for a while, since `endpoint.failingSince`. */
export function webhookFailing(tenant: Tenant, endpoint: WebhookEndpointState, now: Date): NewEvent {
  return endpointEvent('webhook.endpoint.failing', tenant, endpoint, now);
}

/** An attempt of a failing endpoint has succeeded. */
export function webhookRecovered(
  tenant: Tenant,
  endpoint: WebhookEndpointState,
  failedSince: Date,
  now: Date,
): NewEvent {
  const event = endpointEvent('webhook.endpoint.recovered', tenant, endpoint, now);
  return { ...event, data: { ...event.data, failedSince: formatTimestamp(failedSince) } };
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
