import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { presentAttempt, presentDelivery } from './deliveries.presenter.js';
import {
  AttemptPage,
  DeliveryDetailSchema,
  DeliveryPage,
  DeliveryPath,
  DeliverySchema,
  ListAttemptsQuery,
  ListDeliveriesQuery,
  ReplayBody,
} from './deliveries.schemas.js';
import { pageOfAttempts, pageOfDeliveries, readDeliveryDetail, replay } from './deliveries.service.js';
import { EndpointPath } from './endpoints.schemas.js';
import { judgeTenant, TenantQuery } from './tenant-query.js';

const PATH = '/v1/webhooks/{endpointId}/deliveries';

export function deliveryRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'listDeliveries',
      summary: 'List the deliveries of an endpoint, newest first',
      description: 'Also under the id of an endpoint that was removed.',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: EndpointPath,
      query: ListDeliveriesQuery,
      judge: judgeTenant,
      responses: { 200: { description: 'One page of deliveries.', schema: DeliveryPage } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, query }) {
        const { rows, nextCursor } = await pageOfDeliveries(deps, caller, params.endpointId, query);
        return { status: 200, body: { data: rows.map(presentDelivery), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{deliveryId}`,
      operationId: 'readDelivery',
      summary: 'Read a delivery: its state, its event, and why its last attempt ended as it did',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: DeliveryPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: {
        200: { description: 'The delivery, with its event and its last attempt.', schema: DeliveryDetailSchema },
      },
      errors: ['WEBHOOK_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        const detail = await readDeliveryDetail(deps, caller, params.endpointId, params.deliveryId);
        return {
          status: 200,
          body: {
            ...presentDelivery(detail.delivery),
            event: JSON.parse(detail.eventBody) as object,
            lastAttempt: detail.lastAttempt === null ? null : presentAttempt(detail.lastAttempt),
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
      judge: judgeTenant,
      responses: { 200: { description: 'One page of attempts.', schema: AttemptPage } },
      errors: ['WEBHOOK_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      async handle({ caller, params, query }) {
        const { rows, nextCursor } = await pageOfAttempts(deps, caller, params, query);
        return { status: 200, body: { data: rows.map(presentAttempt), nextCursor } };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${PATH}/{deliveryId}/replay`,
      operationId: 'replayDelivery',
      summary: 'Send a finished delivery again',
      description:
        "A new run with the endpoint's present URL and secret, the same event and delivery id, and a replay count that is " +
        'one higher. Of several conflicts the first of these is told: `REPLAY_COUNT_MISMATCH` (`details` hold the present ' +
        'count), `DELIVERY_NOT_TERMINAL`, `REPLAY_LIMIT_REACHED`, `WEBHOOK_DISABLED`.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: DeliveryPath,
      query: TenantQuery,
      body: ReplayBody,
      judge: judgeTenant,
      responses: { 202: { description: 'The delivery, pending again.', schema: DeliverySchema } },
      errors: [
        'WEBHOOK_NOT_FOUND',
        'DELIVERY_NOT_FOUND',
        'REPLAY_COUNT_MISMATCH',
        'DELIVERY_NOT_TERMINAL',
        'REPLAY_LIMIT_REACHED',
        'WEBHOOK_DISABLED',
      ],
      async handle({ caller, params, body }) {
        return { status: 202, body: presentDelivery(await replay(deps, caller, params, body.expectedReplayCount)) };
      },
    }),
  ];
}
