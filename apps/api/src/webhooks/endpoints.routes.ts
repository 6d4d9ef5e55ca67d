import { ENDPOINTS_PER_ENVIRONMENT_MAX, presentWebhookEndpoint, PublicError, type Tenant } from '@callplane/core';
import {
  deleteWebhookEndpoint,
  endSecretRotation,
  findWebhookEndpoint,
  listWebhookEndpoints,
  updateWebhookEndpoint,
  type TypedSql,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Route, type UnvalidatedParts } from '../http/route.js';
import { presentDelivery } from './deliveries.service.js';
import { DeliverySchema } from './deliveries.schemas.js';
import {
  CreateEndpointBody,
  ENDPOINT_LIST,
  EndpointPage,
  EndpointPath,
  EndpointSchema,
  EndpointWithSecretSchema,
  ListEndpointsQuery,
  RotateSecretBody,
  UpdateEndpointBody,
} from './endpoints.schemas.js';
import {
  createEndpoint,
  checkEndpointUrl,
  found,
  newEndpoint,
  normalUrl,
  rotateSecret,
  testEndpoint,
  withoutConflict,
  type EndpointMade,
  type EndpointWithSecret,
} from './endpoints.service.js';
import { checkTenant, pageById, TenantQuery } from '../http/schemas.js';

const PATH = '/v1/webhooks/{endpointId}';

export function endpointRoutes(deps: Deps): Route[] {
  const validate = (parts: UnvalidatedParts) => [...checkTenant(parts), ...checkEndpointUrl(deps, parts.body['url'])];
  /** Ends the rotation that waits for its activation. */
  const endRotation = async (tenant: Tenant, endpointId: string, end: 'activate' | 'cancel') =>
    withoutConflict(
      await deps.database.prisma.$transaction((tx) => endSecretRotation(tx, tenant, endpointId, end, deps.clock.now())),
    );
  return [
    defineRoute({
      method: 'post',
      path: '/v1/webhooks',
      operationId: 'createWebhook',
      summary: 'Register a webhook endpoint',
      description: `The endpoint receives later events of the environment. An environment has at most ${ENDPOINTS_PER_ENVIRONMENT_MAX} endpoints.`,
      tag: 'Webhooks',
      scope: 'webhooks:write',
      idempotent: true,
      query: TenantQuery,
      body: CreateEndpointBody,
      validate,
      responses: {
        201: {
          description: 'The endpoint, with its signing secret. Store the secret: reads do not return it.',
          schema: EndpointWithSecretSchema,
        },
      },
      errors: ['WEBHOOK_LIMIT_REACHED'],
      async handle({ caller, body, bodyAsSent, idempotencyKey }) {
        const make = (tx: TypedSql) => createEndpoint(deps, tx, caller, body);
        const answer = (made: EndpointMade) => ({ status: 201, body: presentWithSecret(newEndpoint(body, made)) });
        if (idempotencyKey === null) return answer(await deps.database.transaction(make));
        const request = { route: 'POST /v1/webhooks', key: idempotencyKey, body: bodyAsSent, holdsSecret: true };
        return idempotently(deps, caller, request, { make, answer });
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
      list: ENDPOINT_LIST,
      validate: checkTenant,
      responses: { 200: { description: 'One page of endpoints.', schema: EndpointPage } },
      async handle({ caller, query, cursor }) {
        const { rows, nextCursor } = await pageById(cursor, query, (part) =>
          listWebhookEndpoints(deps.database.sql, caller, part),
        );
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
      validate: checkTenant,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params }) {
        const endpoint = found(await findWebhookEndpoint(deps.database.sql, caller, params.endpointId));
        return { status: 200, body: presentWebhookEndpoint(endpoint) };
      },
    }),
    defineRoute({
      method: 'patch',
      path: PATH,
      operationId: 'updateWebhook',
      summary: 'Change a webhook endpoint',
      description:
        'Changes the given fields. Delivery runs that have begun keep their URL. The order, the limits, ' +
        '`standardWebhooks` and `retryRejected` apply to attempts that begin later, also of deliveries that are pending already.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      body: UpdateEndpointBody,
      validate,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, body }) {
        const { url, ...others } = body;
        const change = { ...others, ...(url === undefined ? {} : { url: normalUrl(url) }) };
        const { endpoint, deliveries } = found(
          await deps.database.prisma.$transaction((tx) =>
            updateWebhookEndpoint(tx, caller, params.endpointId, change, deps.clock.now()),
          ),
        );
        void deps.producer.wakeDeliveries(deliveries);
        return { status: 200, body: presentWebhookEndpoint(endpoint) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: PATH,
      operationId: 'deleteWebhook',
      summary: 'Remove a webhook endpoint',
      description:
        'Ends the open deliveries of the endpoint (`endpoint_deleted`) and cancels its recoveries. Its deliveries ' +
        'stay readable under its id until retention removes them.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 204: { description: 'The endpoint is removed.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params }) {
        const isRemoved = await deps.database.prisma.$transaction((tx) =>
          deleteWebhookEndpoint(tx, caller, params.endpointId, deps.clock.now()),
        );
        if (!isRemoved) throw new PublicError('WEBHOOK_NOT_FOUND');
        return { status: 204 };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/rotate-secret`,
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the signing secret of a webhook endpoint',
      description:
        'Delivery runs that begin after `activateInSeconds` (default 0: at once) are signed with the new secret. Runs ' +
        'that have begun keep the old one: select the secret by `x-service-signing-key-version` when you verify.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      body: RotateSecretBody,
      bodyOptional: true,
      validate: checkTenant,
      responses: { 200: { description: 'The endpoint, with its new secret.', schema: EndpointWithSecretSchema } },
      errors: ['WEBHOOK_NOT_FOUND', 'SECRET_ROTATION_WAITS'],
      async handle({ caller, params, body }) {
        const rotated = await rotateSecret(deps, caller, params.endpointId, body.activateInSeconds ?? 0);
        return { status: 200, body: presentWithSecret(rotated) };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/rotate-secret/activate`,
      operationId: 'activateWebhookSecret',
      summary: 'Activate the next signing secret of a webhook endpoint at once',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 200: { description: 'The endpoint. Its next secret signs new runs.', schema: EndpointSchema } },
      errors: ['WEBHOOK_NOT_FOUND', 'NO_SECRET_ROTATION'],
      async handle({ caller, params }) {
        const endpoint = await endRotation(caller, params.endpointId, 'activate');
        return { status: 200, body: presentWebhookEndpoint(endpoint) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${PATH}/rotate-secret`,
      operationId: 'cancelWebhookSecretRotation',
      summary: 'Cancel a rotation of the signing secret that waits for its activation',
      description: 'The next secret signs nothing, and its version number is not given again.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 204: { description: 'The rotation is cancelled.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND', 'NO_SECRET_ROTATION'],
      async handle({ caller, params }) {
        await endRotation(caller, params.endpointId, 'cancel');
        return { status: 204 };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/test`,
      operationId: 'testWebhook',
      summary: 'Send a webhook.test event to one endpoint',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: {
        202: { description: 'The delivery. Read it again to see its outcome.', schema: DeliverySchema },
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
