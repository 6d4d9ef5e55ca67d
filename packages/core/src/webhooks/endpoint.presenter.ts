import type { EventType } from '../events/event.js';
import { formatTimestamp } from '../time.js';
import type { ALL_EVENTS } from './vocabulary.js';

/** A webhook endpoint as stored. */
export interface WebhookEndpointState {
  id: string;
  url: string;
  events: (EventType | typeof ALL_EVENTS)[];
  description: string | null;
  enabled: boolean;
  /** Why the service or an operator disabled it; null when it is enabled, or when its owner disabled it. */
  disabledReason: string | null;
  signingKeyVersion: number;
  createdAt: Date;
  updatedAt: Date;
}

/** Presents a webhook endpoint for the API and for events, without its secret. */
export function presentWebhookEndpoint(endpoint: WebhookEndpointState) {
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
