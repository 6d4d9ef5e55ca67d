import { randomBytes } from 'node:crypto';
import {
  ALL_EVENTS,
  generateSigningSecret,
  checkNewUrl,
  newId,
  PublicError,
  seal,
  webhookTest,
  type EndpointOrdering,
  type ErrorCode,
  type ErrorDetail,
  type EventType,
  type MasterKeys,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import {
  findDelivery,
  insertWebhookEndpoint,
  lockWebhookEndpoint,
  rotateWebhookSecret,
  writeEvents,
  type DeliveryRow,
  type TypedSql,
} from '@callplane/db';
import type { Deps } from '../deps.js';

export interface EndpointInput {
  url: string;
  events?: (EventType | typeof ALL_EVENTS)[];
  description?: string;
  enabled?: boolean;
  ordering?: EndpointOrdering;
  maxPerSecond?: number | null;
  maxConcurrent?: number | null;
  standardWebhooks?: boolean;
  retryRejected?: boolean;
}

/** An endpoint with its newly generated secret. */
export interface EndpointWithSecret {
  endpoint: WebhookEndpointState;
  signingSecret: string;
}

/** Checks a URL as far as possible before its host name is resolved. */
export function checkEndpointUrl(deps: Pick<Deps, 'webhooks'>, url: unknown): ErrorDetail[] {
  if (typeof url !== 'string') return [];
  const checked = checkNewUrl(url, deps.webhooks);
  return checked.ok ? [] : [{ path: 'body.url', message: checked.reason }];
}

/** The generated values of a new endpoint; the request body supplies the others. */
export interface EndpointMade {
  id: string;
  /** ISO 8601. */
  createdAt: string;
  signingSecret: string;
}

/**
 * The state of an endpoint at its creation. The answer to the create request uses it, even if the endpoint has changed
 * since.
 */
export function newEndpoint(input: EndpointInput, made: EndpointMade): EndpointWithSecret {
  const createdAt = new Date(made.createdAt);
  const endpoint: WebhookEndpointState = {
    id: made.id,
    url: normalUrl(input.url),
    events: input.events ?? [ALL_EVENTS],
    description: input.description ?? null,
    enabled: input.enabled ?? true,
    disabledReason: null,
    signingKeyVersion: 1,
    nextSigningKeyVersion: null,
    nextActivatesAt: null,
    ordering: input.ordering ?? 'none',
    maxPerSecond: input.maxPerSecond ?? null,
    maxConcurrent: input.maxConcurrent ?? null,
    standardWebhooks: input.standardWebhooks ?? false,
    retryRejected: input.retryRejected ?? false,
    failingSince: null,
    createdAt,
    updatedAt: createdAt,
  };
  return { endpoint, signingSecret: made.signingSecret };
}

export async function createEndpoint(
  deps: Pick<Deps, 'clock' | 'masterKeys'>,
  tx: TypedSql,
  tenant: Tenant,
  input: EndpointInput,
): Promise<EndpointMade> {
  const made = {
    id: newId('webhookEndpoint'),
    createdAt: deps.clock.now().toISOString(),
    signingSecret: generateSigningSecret(randomBytes(32)),
  };
  const { endpoint, signingSecret } = newEndpoint(input, made);
  const sealed = sealSecret(deps.masterKeys, signingSecret, endpoint.id, endpoint.signingKeyVersion);
  if (!(await insertWebhookEndpoint(tx, tenant, endpoint, sealed))) throw new PublicError('WEBHOOK_LIMIT_REACHED');
  return made;
}

export async function rotateSecret(
  deps: Pick<Deps, 'database' | 'clock' | 'masterKeys'>,
  tenant: Tenant,
  endpointId: string,
  activateInSeconds: number,
): Promise<EndpointWithSecret> {
  const signingSecret = generateSigningSecret(randomBytes(32));
  const sealVersion = (version: number) => sealSecret(deps.masterKeys, signingSecret, endpointId, version);
  const rotation = { sealVersion, activateInSeconds };
  const rotated = await deps.database.prisma.$transaction((tx) =>
    rotateWebhookSecret(tx, tenant, endpointId, rotation, deps.clock.now()),
  );
  return { endpoint: withoutConflict(rotated), signingSecret };
}

/** Sends a `webhook.test` event to this endpoint only, whatever events it subscribes to. */
export async function testEndpoint(
  deps: Pick<Deps, 'database' | 'clock' | 'producer'>,
  tenant: Tenant,
  endpointId: string,
): Promise<DeliveryRow> {
  const { delivery, deliveries } = await deps.database.transaction(async (tx) => {
    const endpoint = found(await lockWebhookEndpoint(tx, tenant, endpointId));
    if (!endpoint.enabled) throw new PublicError('WEBHOOK_DISABLED');
    const event = webhookTest(tenant, endpoint, deps.clock.now());
    const written = await writeEvents(tx, [event], { only: endpointId });
    const [{ id } = { id: '' }] = written.deliveries;
    return { delivery: found(await findDelivery(tx, tenant, endpointId, id)), deliveries: written.deliveries };
  });
  void deps.producer.wakeDeliveries(deliveries);
  return delivery;
}

/** Normalises the URL before it is stored, so that deliveries go to the URL that was validated. */
export function normalUrl(url: string): string {
  return new URL(url).href;
}

function sealSecret(masterKeys: MasterKeys, secret: string, endpointId: string, version: number): string {
  return seal(masterKeys, secret, `webhook-secret:${endpointId}:${version}`);
}

export function withoutConflict<T>(result: T | ErrorCode | null): T {
  if (typeof result === 'string') throw new PublicError(result as ErrorCode);
  return found(result);
}

export function found<T>(row: T | null): T {
  if (row === null) throw new PublicError('WEBHOOK_NOT_FOUND');
  return row;
}
