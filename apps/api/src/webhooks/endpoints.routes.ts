import { ENDPOINTS_PER_ENVIRONMENT_MAX, presentWebhookEndpoint } from '@callplane/core';
import type { Prisma } from '@callplane/db';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Route, type UnjudgedParts } from '../http/route.js';
import { presentDelivery } from './deliveries.presenter.js';
import { DeliverySchema } from './deliveries.schemas.js';
import {
  CreateEndpointBody,
  EndpointPage,
  EndpointPath,
  EndpointSchema,
  EndpointWithSecretSchema,
  ListEndpointsQuery,
  UpdateEndpointBody,
} from './endpoints.schemas.js';
import {
  createEndpoint,
  judgeEndpointUrl,
  pageOfEndpoints,
  readEndpoint,
  removeEndpoint,
  rotateSecret,
  testEndpoint,
  updateEndpoint,
  type EndpointWithSecret,
} from './endpoints.service.js';
import { judgeTenant, TenantQuery } from './tenant-query.js';

const PATH = '/v1/webhooks/{endpointId}';

export function endpointRoutes(deps: Deps): Route[] {
  const judge = (parts: UnjudgedParts) => [...judgeTenant(parts), ...judgeEndpointUrl(deps, parts.body['url'])];
  return [
    defineRoute({
      method: 'post',
      path: '/v1/webhooks',
      operationId: 'createWebhook',
      summary: 'Register a webhook endpoint',
      description: `From now on it gets the environment's events. An environment has at most ${ENDPOINTS_PER_ENVIRONMENT_MAX}.`,
      tag: 'Webhooks',
      scope: 'webhooks:write',
      idempotent: true,
      query: TenantQuery,
      body: CreateEndpointBody,
      judge,
      responses: {
        201: { description: 'The endpoint, with its signing secret: keep it.', schema: EndpointWithSecretSchema },
      },
      errors: ['WEBHOOK_LIMIT_REACHED'],
      async handle({ caller, body, idempotencyKey }) {
        const create = async (tx: Prisma.TransactionClient) => ({
          status: 201,
          body: presentWithSecret(await createEndpoint(deps, tx, caller, body)),
        });
        if (idempotencyKey === null) return deps.database.transaction(create);
        const request = { route: 'POST /v1/webhooks', key: idempotencyKey, body, holdsSecret: true };
        return idempotently(deps, caller, request, create);
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/webhooks',
      operationId: 'listWebhooks',
      summary: 'List webhook endpoints, newest first',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      query: ListEndpointsQuery,
      judge: judgeTenant,
      responses: { 200: { description: 'One page of endpoints.', schema: EndpointPage } },
      async handle({ caller, query }) {
        const { rows, nextCursor } = await pageOfEndpoints(deps, caller, query);
        return { status: 200, body: { data: rows.map(presentWebhookEndpoint), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'readWebhook',
      summary: 'Read a webhook endpoint',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: EndpointPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params }) {
        return { status: 200, body: presentWebhookEndpoint(await readEndpoint(deps, caller, params.endpointId)) };
      },
    }),
    defineRoute({
      method: 'patch',
      path: PATH,
      operationId: 'updateWebhook',
      summary: 'Change a webhook endpoint',
      description: 'Changes the fields that are given. Runs that have begun keep their URL.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      body: UpdateEndpointBody,
      judge,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, body }) {
        return {
          status: 200,
          body: presentWebhookEndpoint(await updateEndpoint(deps, caller, params.endpointId, body)),
        };
      },
    }),
    defineRoute({
      method: 'delete',
      path: PATH,
      operationId: 'deleteWebhook',
      summary: 'Remove a webhook endpoint',
      description:
        'Ends its open deliveries (`endpoint_deleted`) and cancels its recoveries. Its deliveries stay readable under its ' +
        'id until retention removes them.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: { 204: { description: 'It is removed.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params }) {
        await removeEndpoint(deps, caller, params.endpointId);
        return { status: 204 };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/rotate-secret`,
      operationId: 'rotateWebhookSecret',
      summary: 'Give a webhook endpoint a new signing secret',
      description:
        'Runs that begin from now on are signed with it. Runs that have begun keep the old one: verify with both, by ' +
        '`x-service-signing-key-version`.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: { 200: { description: 'The endpoint, with its new secret.', schema: EndpointWithSecretSchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params }) {
        return { status: 200, body: presentWithSecret(await rotateSecret(deps, caller, params.endpointId)) };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/test`,
      operationId: 'testWebhook',
      summary: 'Send a webhook.test event to this endpoint alone',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: {
        202: { description: 'The delivery: read it again to see what became of it.', schema: DeliverySchema },
      },
      errors: ['WEBHOOK_NOT_FOUND', 'WEBHOOK_DISABLED'],
      async handle({ caller, params }) {
        return { status: 202, body: presentDelivery(await testEndpoint(deps, caller, params.endpointId)) };
      },
    }),
  ];
}

function presentWithSecret({ endpoint, signingSecret }: EndpointWithSecret) {
  return { ...presentWebhookEndpoint(endpoint), signingSecret };
}
