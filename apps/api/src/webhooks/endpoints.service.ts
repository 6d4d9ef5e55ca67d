import { randomBytes } from 'node:crypto';
import {
  checkNewUrl,
  generateSigningSecret,
  headerContext,
  mapHeaders,
  newId,
  newWebhookEndpoint,
  PublicError,
  seal,
  type ErrorCode,
  type ErrorDetail,
  type MasterKeys,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import {
  type Database,
  endSecretRotation,
  insertWebhookEndpoint,
  webhookEndpointExisted,
  type TypedSql,
} from '@callplane/db';
import type { Static } from 'typebox';
import type { Deps } from '../deps.js';
import type { CreateEndpointBody } from './endpoints.schemas.js';

/** Checks a URL as far as possible before its host name is resolved. */
export function urlFailures(deps: Pick<Deps, 'webhooks'>, url: unknown): ErrorDetail[] {
  if (typeof url !== 'string') return [];
  const checked = checkNewUrl(url, deps.webhooks);
  return checked.ok ? [] : [{ path: 'body.url', message: checked.reason }];
}

/** Normalises the URL before it is stored, so that deliveries go to the URL that was validated. */
export function normalUrl(url: string): string {
  return new URL(url).href;
}

type EndpointInput = Static<typeof CreateEndpointBody>;

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
export function newEndpoint(input: EndpointInput, { id, createdAt }: EndpointMade): WebhookEndpointState {
  const headers = mapHeaders(input.headers ?? {}, (value) => value);
  return newWebhookEndpoint({ ...input, headers, id, url: normalUrl(input.url), createdAt: new Date(createdAt) });
}

/** Seals the values of the headers that a request gives. */
export function withSealedHeaders<Fields extends { headers?: Record<string, string> }>(
  masterKeys: MasterKeys,
  endpointId: string,
  fields: Fields,
): Fields {
  if (fields.headers === undefined) return fields;
  const sealValue = (value: string, name: string) => seal(masterKeys, value, headerContext(endpointId, name));
  return { ...fields, headers: mapHeaders(fields.headers, sealValue) };
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
  const endpoint = newEndpoint(withSealedHeaders(deps.masterKeys, made.id, input), made);
  const sealed = sealSecret(deps.masterKeys, made.signingSecret, made.id, endpoint.signingKeyVersion);
  if (!(await insertWebhookEndpoint(tx, tenant, endpoint, sealed))) throw new PublicError('WEBHOOK_LIMIT_REACHED');
  return made;
}

export async function endRotation(
  { database, clock }: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  endpointId: string,
  end: 'activate' | 'cancel',
): Promise<WebhookEndpointState> {
  return withoutConflict(await endSecretRotation(database, tenant, endpointId, end, clock.now()));
}

export function sealSecret(masterKeys: MasterKeys, secret: string, endpointId: string, version: number): string {
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

/** Throws unless there is, or was, such an endpoint. */
export async function requireEndpoint({ prisma }: Database, tenant: Tenant, endpointId: string): Promise<void> {
  if (!(await webhookEndpointExisted(prisma, tenant, endpointId))) throw new PublicError('WEBHOOK_NOT_FOUND');
}

/** Throws the error of a missing endpoint, or of a missing object of it. */
export async function notFoundBelow(
  database: Database,
  tenant: Tenant,
  endpointId: string,
  code: ErrorCode,
): Promise<never> {
  await requireEndpoint(database, tenant, endpointId);
  throw new PublicError(code);
}
