import type { EventType } from '../events/event-types.js';
import { optionDefaults, optionsOf } from '../options/option-table.js';
import { ENDPOINT_OPTIONS, type EndpointOptions } from './endpoint-options.js';
import { maskedHeaders } from './endpoint-headers.js';
import { ALL_EVENTS } from './vocabulary.js';

/** The values of its headers are sealed. */
export interface WebhookEndpointState extends EndpointOptions {
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
  /** Time of the first failed attempt since the last success; null if there is none. */
  failingSince: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

/** An endpoint at its creation. */
export function newWebhookEndpoint(
  fields: Pick<WebhookEndpointState, 'id' | 'url' | 'createdAt'> & Partial<WebhookEndpointState>,
): WebhookEndpointState {
  return {
    events: [ALL_EVENTS],
    description: null,
    enabled: true,
    disabledReason: null,
    signingKeyVersion: 1,
    nextSigningKeyVersion: null,
    nextActivatesAt: null,
    ...optionDefaults(ENDPOINT_OPTIONS),
    failingSince: null,
    updatedAt: fields.createdAt,
    ...fields,
  };
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
    ...optionsOf(ENDPOINT_OPTIONS, endpoint),
    headers: maskedHeaders(Object.keys(endpoint.headers)),
    failingSince: endpoint.failingSince === null ? null : endpoint.failingSince.toISOString(),
    createdAt: endpoint.createdAt.toISOString(),
    updatedAt: endpoint.updatedAt.toISOString(),
  };
}
