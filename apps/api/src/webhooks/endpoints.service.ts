import { randomBytes } from 'node:crypto';
import {
  ALL_EVENTS,
  generateSigningSecret,
  judgeUrl,
  newId,
  presentWebhookEndpoint,
  PublicError,
  seal,
  type ErrorDetail,
  type EventType,
  type MasterKeys,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import {
  deleteWebhookEndpoint,
  findDelivery,
  findWebhookEndpoint,
  holdWebhookEndpoint,
  insertWebhookEndpoint,
  listWebhookEndpoints,
  rotateWebhookSecret,
  updateWebhookEndpoint,
  writeEvents,
  type DeliveryRow,
  type Prisma,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { decodeCursor } from '../http/cursor.js';
import { cutPage, type Page } from '../http/pages.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';
import { wakeDeliveries } from './wake-deliveries.js';

export interface EndpointInput {
  url: string;
  events?: (EventType | typeof ALL_EVENTS)[];
  description?: string;
  enabled?: boolean;
}

export type EndpointChange = Partial<Omit<EndpointInput, 'description'> & { description: string | null }>;

/** An endpoint with the secret that it has just got. */
export interface EndpointWithSecret {
  endpoint: WebhookEndpointState;
  signingSecret: string;
}

/** What can be told of a URL before its name is resolved. */
export function judgeEndpointUrl(deps: Pick<Deps, 'webhooks'>, url: unknown): ErrorDetail[] {
  if (typeof url !== 'string') return [];
  const judged = judgeUrl(url, deps.webhooks);
  return judged.ok ? [] : [{ path: 'body.url', message: judged.reason }];
}

export async function createEndpoint(
  deps: Pick<Deps, 'clock' | 'masterKeys'>,
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  input: EndpointInput,
): Promise<EndpointWithSecret> {
  const id = newId('webhookEndpoint');
  const signingSecret = generateSigningSecret(randomBytes(32));
  const endpoint = await insertWebhookEndpoint(
    tx,
    tenant,
    {
      id,
      url: normalUrl(input.url),
      events: input.events ?? [ALL_EVENTS],
      description: input.description ?? null,
      enabled: input.enabled ?? true,
      createdAt: deps.clock.now(),
    },
    sealSecret(deps.masterKeys, signingSecret, id, 1),
  );
  if (endpoint === null) throw new PublicError('WEBHOOK_LIMIT_REACHED');
  return { endpoint, signingSecret };
}

export async function readEndpoint(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
): Promise<WebhookEndpointState> {
  return found(await findWebhookEndpoint(deps.database.prisma, tenant, endpointId));
}

export async function pageOfEndpoints(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: { limit?: number; cursor?: string },
): Promise<Page<WebhookEndpointState>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const [beforeId = null] = query.cursor === undefined ? [] : decodeCursor(query.cursor);
  const endpoints = await listWebhookEndpoints(deps.database.prisma, tenant, { beforeId, limit: limit + 1 });
  return cutPage('webhooks', endpoints, limit);
}

export async function updateEndpoint(
  deps: Pick<Deps, 'database' | 'clock' | 'producer' | 'logger'>,
  tenant: Tenant,
  endpointId: string,
  { url, ...change }: EndpointChange,
): Promise<WebhookEndpointState> {
  const { endpoint, deliveries } = found(
    await deps.database.transaction((tx) =>
      updateWebhookEndpoint(
        tx,
        tenant,
        endpointId,
        { ...change, ...(url === undefined ? {} : { url: normalUrl(url) }) },
        deps.clock.now(),
      ),
    ),
  );
  wakeDeliveries(deps, deliveries);
  return endpoint;
}

export async function rotateSecret(
  deps: Pick<Deps, 'database' | 'clock' | 'masterKeys'>,
  tenant: Tenant,
  endpointId: string,
): Promise<EndpointWithSecret> {
  const signingSecret = generateSigningSecret(randomBytes(32));
  const sealVersion = (version: number) => sealSecret(deps.masterKeys, signingSecret, endpointId, version);
  const endpoint = await deps.database.transaction((tx) =>
    rotateWebhookSecret(tx, tenant, endpointId, sealVersion, deps.clock.now()),
  );
  return { endpoint: found(endpoint), signingSecret };
}

/** Sends a `webhook.test` event to this endpoint alone, whatever it subscribes to. */
export async function testEndpoint(
  deps: Pick<Deps, 'database' | 'clock' | 'producer' | 'logger'>,
  tenant: Tenant,
  endpointId: string,
): Promise<DeliveryRow> {
  const { delivery, deliveries } = await deps.database.transaction(async (tx) => {
    const endpoint = found(await holdWebhookEndpoint(tx, tenant, endpointId));
    if (!endpoint.enabled) throw new PublicError('WEBHOOK_DISABLED');
    const event = { type: 'webhook.test', data: { webhook: presentWebhookEndpoint(endpoint) } } as const;
    const written = await writeEvents(tx, tenant, null, [event], deps.clock.now(), { only: endpointId });
    const [{ id } = { id: '' }] = written.deliveries;
    return { delivery: found(await findDelivery(tx, tenant, endpointId, id)), deliveries: written.deliveries };
  });
  wakeDeliveries(deps, deliveries);
  return delivery;
}

/** From the commit of this on, nothing is sent there any more; its deliveries can still be read. */
export async function removeEndpoint(
  deps: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  endpointId: string,
): Promise<void> {
  const isRemoved = await deps.database.transaction((tx) =>
    deleteWebhookEndpoint(tx, tenant, endpointId, deps.clock.now()),
  );
  if (!isRemoved) throw new PublicError('WEBHOOK_NOT_FOUND');
}

/** The URL as it is stored: what was judged is what will be called. */
function normalUrl(url: string): string {
  return new URL(url).href;
}

function sealSecret(masterKeys: MasterKeys, secret: string, endpointId: string, version: number): string {
  return seal(masterKeys, secret, `webhook-secret:${endpointId}:${version}`);
}

function found<T>(row: T | null): T {
  if (row === null) throw new PublicError('WEBHOOK_NOT_FOUND');
  return row;
}
