import { randomBytes } from 'node:crypto';
import {
  ALL_EVENTS,
  endpointHeaderFailures,
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  filterFailures,
  generateSigningSecret,
  presentWebhookEndpoint,
  PublicError,
  SIGNATURE_CONTRACT,
  type WebhookEndpointState,
} from '@callplane/core';
import {
  deleteWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
  rotateWebhookSecret,
  tryFilter,
  updateWebhookEndpoint,
  type TypedSql,
} from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { idempotently } from '../http/idempotency.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, type UntaggedRoute, type UnvalidatedParts } from '../http/route.js';
import {
  CreateEndpointBody,
  EndpointPath,
  EndpointSchema,
  EndpointWithSecretSchema,
  RotateSecretBody,
  SignatureContractSchema,
  TriedFilterSchema,
  TryFilterBody,
  UpdateEndpointBody,
} from './endpoints.schemas.js';
import {
  createEndpoint,
  endRotation,
  found,
  newEndpoint,
  normalUrl,
  sealSecret,
  urlFailures,
  withoutConflict,
  withSealedHeaders,
  type EndpointMade,
} from './endpoints.service.js';

const PATH = '/v1/webhooks/{endpointId}';

export function endpointRoutes(deps: Deps): UntaggedRoute[] {
  const validate = ({ body }: UnvalidatedParts) => [
    ...urlFailures(deps, body['url']),
    ...endpointHeaderFailures('body.headers', body['headers']),
    ...filterFailures('body.filter', body['filter']),
  ];
  return [
    // Before the routes of an endpoint: their path matches this one too.
    defineRoute({
      method: 'get',
      path: '/v1/webhooks/signature-contract',
      operationId: 'readSignatureContract',
      summary: 'Read the signing and retry policy',
      scope: 'webhooks:read',
      responses: { 200: { description: 'The signing and retry policy.', schema: SignatureContractSchema } },
      handle: () => Promise.resolve({ status: 200, body: SIGNATURE_CONTRACT }),
    }),
    defineRoute({
      method: 'post',
      path: '/v1/webhooks',
      operationId: 'createWebhook',
      summary: 'Register a webhook endpoint',
      description: `The endpoint receives later events of the environment. An environment has at most ${ENDPOINTS_PER_ENVIRONMENT_MAX} endpoints.`,
      scope: 'webhooks:write',
      idempotent: true,
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
        const create = (tx: TypedSql) => createEndpoint(deps, tx, caller, body);
        const make = (tx: TypedSql | null) => (tx === null ? deps.database.transaction(create) : create(tx));
        const answer = (made: EndpointMade) => ({
          status: 201,
          body: presentWithSecret(newEndpoint(body, made), made.signingSecret),
        });
        const request = { route: 'POST /v1/webhooks', key: idempotencyKey, body: bodyAsSent, holdsSecret: true };
        return idempotently(deps, caller, request, { make, answer });
      },
    }),
    listRoute(deps, {
      path: '/v1/webhooks',
      operationId: 'listWebhooks',
      summary: 'List webhook endpoints, newest first',
      scope: 'webhooks:read',
      position: { id: idOf('whep') },
      item: EndpointSchema,
      items: 'endpoints',
      read: ({ caller }, part) => listWebhookEndpoints(deps.reads.sql, caller, part),
      present: (endpoint) => presentWebhookEndpoint(endpoint),
    }),
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'readWebhook',
      summary: 'Read a webhook endpoint',
      scope: 'webhooks:read',
      params: EndpointPath,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      async handle({ caller, params }) {
        const endpoint = found(await findWebhookEndpoint(deps.reads.sql, caller, params.endpointId));
        return { status: 200, body: presentWebhookEndpoint(endpoint) };
      },
    }),
    defineRoute({
      method: 'patch',
      path: PATH,
      operationId: 'updateWebhook',
      summary: 'Change a webhook endpoint',
      description:
        'Changes the given fields. Delivery runs that have begun keep their URL. The order, the limits, `headers`, ' +
        '`standardWebhooks` and `retryRejected` apply to attempts that begin later, also of deliveries that are pending already.',
      scope: 'webhooks:write',
      params: EndpointPath,
      body: UpdateEndpointBody,
      validate,
      responses: { 200: { description: 'The endpoint.', schema: EndpointSchema } },
      async handle({ caller, params, body }) {
        const { url, ...others } = withSealedHeaders(deps.masterKeys, params.endpointId, body);
        const change = { ...others, ...(url === undefined ? {} : { url: normalUrl(url) }) };
        const { endpoint, deliveries } = found(
          await updateWebhookEndpoint(deps.database, caller, params.endpointId, change, deps.clock.now()),
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
      scope: 'webhooks:write',
      params: EndpointPath,
      responses: { 204: { description: 'The endpoint is removed.', schema: null } },
      async handle({ caller, params }) {
        const isRemoved = await deleteWebhookEndpoint(deps.database, caller, params.endpointId, deps.clock.now());
        if (!isRemoved) throw new PublicError('WEBHOOK_NOT_FOUND');
        return { status: 204 };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/try-filter`,
      operationId: 'tryWebhookFilter',
      summary: 'Try a filter on a past event',
      description: 'Sends and stores nothing. Without `filter`, it tries the filter of the endpoint.',
      scope: 'webhooks:read',
      params: EndpointPath,
      body: TryFilterBody,
      validate: ({ body }) => filterFailures('body.filter', body['filter']),
      responses: { 200: { description: 'Whether the event would be delivered.', schema: TriedFilterSchema } },
      errors: ['EVENT_NOT_FOUND'],
      async handle({ caller, params, body }) {
        const { events, ...endpoint } = found(await findWebhookEndpoint(deps.reads.sql, caller, params.endpointId));
        const filter = body.filter === undefined ? endpoint.filter : body.filter;
        const tried = await tryFilter(deps.reads.sql, caller, body.eventId, filter);
        if (tried === null) throw new PublicError('EVENT_NOT_FOUND');
        const isSubscribed = events.includes(ALL_EVENTS) || events.some((type) => type === tried.eventType);
        return { status: 200, body: { ...tried, subscribed: isSubscribed } };
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
      scope: 'webhooks:write',
      params: EndpointPath,
      body: Type.Optional(RotateSecretBody),
      responses: { 200: { description: 'The endpoint, with its new secret.', schema: EndpointWithSecretSchema } },
      errors: ['SECRET_ROTATION_WAITS'],
      async handle({ caller, params: { endpointId }, body }) {
        const signingSecret = generateSigningSecret(randomBytes(32));
        const rotation = {
          sealVersion: (version: number) => sealSecret(deps.masterKeys, signingSecret, endpointId, version),
          activateInSeconds: body.activateInSeconds ?? 0,
        };
        const rotated = await rotateWebhookSecret(deps.database, caller, endpointId, rotation, deps.clock.now());
        return { status: 200, body: presentWithSecret(withoutConflict(rotated), signingSecret) };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/rotate-secret/activate`,
      operationId: 'activateWebhookSecret',
      summary: 'Activate the next signing secret of a webhook endpoint at once',
      scope: 'webhooks:write',
      params: EndpointPath,
      responses: { 200: { description: 'The endpoint. Its next secret signs new runs.', schema: EndpointSchema } },
      errors: ['NO_SECRET_ROTATION'],
      async handle({ caller, params }) {
        const endpoint = await endRotation(deps, caller, params.endpointId, 'activate');
        return { status: 200, body: presentWebhookEndpoint(endpoint) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${PATH}/rotate-secret`,
      operationId: 'cancelWebhookSecretRotation',
      summary: 'Cancel a rotation of the signing secret that waits for its activation',
      description: 'The next secret signs nothing, and its version number is not given again.',
      scope: 'webhooks:write',
      params: EndpointPath,
      responses: { 204: { description: 'The rotation is cancelled.', schema: null } },
      errors: ['NO_SECRET_ROTATION'],
      async handle({ caller, params }) {
        await endRotation(deps, caller, params.endpointId, 'cancel');
        return { status: 204 };
      },
    }),
  ];
}

function presentWithSecret(endpoint: WebhookEndpointState, signingSecret: string) {
  return { ...presentWebhookEndpoint(endpoint), signingSecret };
}
