import { formatTimestamp } from '../time.js';
import type { ALL_EVENTS, EventType } from './vocabulary.js';

/** A webhook endpoint as it is stored. */
export interface WebhookEndpointState {
  id: string;
  url: string;
  events: (EventType | typeof ALL_EVENTS)[];
  description: string | null;
  enabled: boolean;
  /** Why we disabled it; null when it is enabled, or when its owner did. */
  disabledReason: string | null;
  signingKeyVersion: number;
  createdAt: Date;
  updatedAt: Date;
}

/** A webhook endpoint as the API returns it and as events hold it; never with a secret. */
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
