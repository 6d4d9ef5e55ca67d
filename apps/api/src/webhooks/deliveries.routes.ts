import { diagnoseDelivery, type ErrorDetail } from '@callplane/core';
import { replayDelivery, retryDelivery } from '@callplane/db';
import type { Deps } from '../deps.js';
import { defineRoute, type Route, type UnvalidatedParts } from '../http/route.js';
import { checkTenant, TenantQuery, timeFailures } from '../http/schemas.js';
import {
  pageOfAttempts,
  pageOfDeliveries,
  presentAttempt,
  presentDelivery,
  readDeliveryDetail,
  sendAgain,
} from './deliveries.service.js';
import {
  ALL_DELIVERIES_LIST,
  ATTEMPT_LIST,
  AttemptPage,
  DELIVERY_LIST,
  DeliveryDetailSchema,
  DeliveryPage,
  DeliveryPath,
  DeliverySchema,
  ListAllDeliveriesQuery,
  ListAttemptsQuery,
  ListDeliveriesQuery,
  ReplayBody,
} from './deliveries.schemas.js';
import { EndpointPath } from './endpoints.schemas.js';

const PATH = '/v1/webhooks/{endpointId}/deliveries';

const checkQuery = (parts: UnvalidatedParts): ErrorDetail[] => [
  ...checkTenant(parts),
  ...timeFailures('query', parts.query),
];

export function deliveryRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'listDeliveries',
      summary: 'List the deliveries of an endpoint, newest first',
      description: 'Also works with the id of a removed endpoint.',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: EndpointPath,
      query: ListDeliveriesQuery,
      list: DELIVERY_LIST,
      validate: checkQuery,
      responses: { 200: { description: 'One page of deliveries.', schema: DeliveryPage } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { rows, nextCursor } = await pageOfDeliveries(deps, caller, { ...query, ...params }, cursor);
        return { status: 200, body: { data: rows.map(presentDelivery), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/deliveries',
      operationId: 'listAllDeliveries',
      summary: 'List the deliveries of all endpoints, newest first',
      description: 'Those of removed endpoints are included.',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      query: ListAllDeliveriesQuery,
      list: ALL_DELIVERIES_LIST,
      validate: checkQuery,
      responses: { 200: { description: 'One page of deliveries.', schema: DeliveryPage } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, query, cursor }) {
        const { rows, nextCursor } = await pageOfDeliveries(deps, caller, query, cursor);
        return { status: 200, body: { data: rows.map(presentDelivery), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{deliveryId}`,
      operationId: 'readDelivery',
      summary: 'Read a delivery with its event and its last attempt',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: DeliveryPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: {
        200: { description: 'The delivery, with its event and its last attempt.', schema: DeliveryDetailSchema },
      },
      errors: ['WEBHOOK_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        const detail = await readDeliveryDetail(deps, caller, params.endpointId, params.deliveryId);
        const [lastAttempt] = detail.attempts;
        const { eventId, failureReason, attempts } = detail.delivery;
        return {
          status: 200,
          body: {
            ...presentDelivery(detail.delivery),
            event: JSON.parse(detail.eventBody) as object,
            body: detail.eventBody,
            lastAttempt: lastAttempt === undefined ? null : presentAttempt(lastAttempt, eventId),
            diagnosis: diagnoseDelivery(failureReason, attempts, lastAttempt ?? null),
          },
        };
      },
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{deliveryId}/attempts`,
      operationId: 'listAttempts',
      summary: 'List the attempts of a delivery over all its runs, newest first',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: DeliveryPath,
      query: ListAttemptsQuery,
      list: ATTEMPT_LIST,
      validate: checkTenant,
      responses: { 200: { description: 'One page of attempts.', schema: AttemptPage } },
      errors: ['WEBHOOK_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { eventId, rows, nextCursor } = await pageOfAttempts(deps, caller, params, query, cursor);
        return { status: 200, body: { data: rows.map((row) => presentAttempt(row, eventId)), nextCursor } };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/{deliveryId}/replay`,
      operationId: 'replayDelivery',
      summary: 'Replay a finished delivery',
      description:
        "Starts a new run with the endpoint's current URL and secret. The event and the delivery id stay the same, and the " +
        'replay count increases by one. If several conflicts apply, the response has the first of these codes: ' +
        '`REPLAY_COUNT_MISMATCH` (`details` contain the current count), `DELIVERY_NOT_TERMINAL`, `EVENT_ERASED`, ' +
        '`REPLAY_LIMIT_REACHED`, `WEBHOOK_DISABLED`.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: DeliveryPath,
      query: TenantQuery,
      body: ReplayBody,
      validate: checkTenant,
      responses: { 202: { description: 'The delivery, pending again.', schema: DeliverySchema } },
      errors: [
        'WEBHOOK_NOT_FOUND',
        'DELIVERY_NOT_FOUND',
        'REPLAY_COUNT_MISMATCH',
        'DELIVERY_NOT_TERMINAL',
        'EVENT_ERASED',
        'REPLAY_LIMIT_REACHED',
        'WEBHOOK_DISABLED',
      ],
      async handle({ caller, params, body }) {
        const { endpointId, deliveryId } = params;
        const delivery = await sendAgain(deps, (tx) =>
          replayDelivery(tx, caller, endpointId, deliveryId, body.expectedReplayCount),
        );
        return { status: 202, body: presentDelivery(delivery) };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/{deliveryId}/retry`,
      operationId: 'retryDelivery',
      summary: 'Retry a pending delivery now',
      description:
        'Brings the next attempt forward to now, in the same run: same bytes, same replay count. It counts like any other ' +
        'attempt. If the attempt is due already, nothing changes. If several conflicts apply, the response has the first ' +
        'of these codes: `DELIVERY_NOT_PENDING` (finished), `DELIVERY_IN_FLIGHT` (being sent), `WEBHOOK_DISABLED`.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: DeliveryPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 202: { description: 'The delivery, due now.', schema: DeliverySchema } },
      errors: [
        'WEBHOOK_NOT_FOUND',
        'DELIVERY_NOT_FOUND',
        'DELIVERY_NOT_PENDING',
        'DELIVERY_IN_FLIGHT',
        'WEBHOOK_DISABLED',
      ],
      async handle({ caller, params }) {
        const { endpointId, deliveryId } = params;
        const delivery = await sendAgain(deps, (tx) => retryDelivery(tx, caller, endpointId, deliveryId));
        return { status: 202, body: presentDelivery(delivery) };
      },
    }),
  ];
}
