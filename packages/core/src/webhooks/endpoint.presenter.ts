import type { EventType } from '../events/event.js';
import type { ALL_EVENTS, EndpointOrdering } from './vocabulary.js';

export interface WebhookEndpointState {
  id: string;
  url: string;
  events: (EventType | typeof ALL_EVENTS)[];
  description: string | null;
  enabled: boolean;
  /** Why the service or an operator disabled it; null when it is enabled, or when its owner disabled it. */
  disabledReason: string | null;
  signingKeyVersion: number;
  /** Of the secret that signs new runs from `nextActivatesAt` on; both are null unless a rotation waits. */
  nextSigningKeyVersion: number | null;
  nextActivatesAt: Date | null;
  ordering: EndpointOrdering;
  /** Maximum number of attempts that begin in a second; null for no limit. */
  maxPerSecond: number | null;
  /** Maximum number of attempts at once, over all workers; null for no limit. */
  maxConcurrent: number | null;
  /** Whether its deliveries also carry the headers of the Standard Webhooks specification. */
  standardWebhooks: boolean;
  /** Whether rejected deliveries are tried again, instead of failing for good. */
  retryRejected: boolean;
  /** Time of the first failed attempt since the last success; null if there is none. */
  failingSince: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

export function presentWebhookEndpoint(endpoint: WebhookEndpointState) {
  return {
    id: endpoint.id,
    url: endpoint.url,
    events: endpoint.events,
    description: endpoint.description,
    enabled: endpoint.enabled,
    disabledReason: endpoint.disabledReason,
    signingKeyVersion: endpoint.signingKeyVersion,
    nextSigningKeyVersion: endpoint.nextSigningKeyVersion,
    nextActivatesAt: endpoint.nextActivatesAt === null ? null : endpoint.nextActivatesAt.toISOString(),
    ordering: endpoint.ordering,
    maxPerSecond: endpoint.maxPerSecond,
    maxConcurrent: endpoint.maxConcurrent,
    standardWebhooks: endpoint.standardWebhooks,
    retryRejected: endpoint.retryRejected,
    failingSince: endpoint.failingSince === null ? null : endpoint.failingSince.toISOString(),
    createdAt: endpoint.createdAt.toISOString(),
    updatedAt: endpoint.updatedAt.toISOString(),
  };
}
