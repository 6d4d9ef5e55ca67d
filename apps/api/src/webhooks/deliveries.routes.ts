import {
  attemptPhases,
  diagnoseAttempt,
  diagnoseDelivery,
  PublicError,
  shownRequestHeaders,
  endpointEvent,
  type Tenant,
} from '@callplane/core';
import {
  findDelivery,
  findDeliveryDetail,
  listAttempts,
  listDeliveries,
  lockWebhookEndpoint,
  replayDelivery,
  retryDelivery,
  writeEvents,
  type AttemptRow,
  type DeliveryRow,
  type ReplayResult,
  type RetryResult,
  type TypedSql,
} from '@callplane/db';
import type { Static, TObject } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, type UntaggedRoute } from '../http/route.js';
import { present } from '../http/schemas.js';
import {
  AttemptSchema,
  deliveryFilters,
  DeliveryDetailSchema,
  DeliveryPath,
  DeliverySchema,
  ofEndpoint,
  ReplayBody,
} from './deliveries.schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import { found, notFoundBelow, requireEndpoint } from './endpoints.service.js';

const PATH = '/v1/webhooks/{endpointId}/deliveries';

export function deliveryRoutes(deps: Deps): UntaggedRoute[] {
  return [
    defineRoute({
      method: 'post',
      path: '/v1/webhooks/{endpointId}/test',
      operationId: 'testWebhook',
      summary: 'Send a webhook.test event to one endpoint',
      scope: 'webhooks:write',
      params: EndpointPath,
      responses: {
        202: { description: 'The delivery. Read it again to see its outcome.', schema: DeliverySchema },
      },
      errors: ['WEBHOOK_DISABLED'],
      async handle({ caller, params }) {
        return { status: 202, body: present(DeliverySchema, await testEndpoint(deps, caller, params.endpointId)) };
      },
    }),
    listRoute(deps, {
      path: PATH,
      operationId: 'listDeliveries',
      summary: 'List the deliveries of an endpoint, newest first',
      description: 'Also works with the id of a removed endpoint.',
      scope: 'webhooks:read',
      params: EndpointPath,
      filters: deliveryFilters,
      position: { id: idOf('dlv') },
      item: DeliverySchema,
      items: 'deliveries',
      read: ({ caller, params, query }, part) =>
        listDeliveries(deps.reads.sql, caller, filterOf({ ...query, ...params }), part),
      onEmpty: ({ caller, params }) => requireEndpoint(deps.reads, caller, params.endpointId),
      present: (delivery) => present(DeliverySchema, delivery),
    }),
    listRoute(deps, {
      path: '/v1/deliveries',
      operationId: 'listAllDeliveries',
      summary: 'List the deliveries of all endpoints, newest first',
      description: 'Includes the deliveries of removed endpoints.',
      scope: 'webhooks:read',
      filters: { endpointId: ofEndpoint, ...deliveryFilters },
      position: { id: idOf('dlv') },
      item: DeliverySchema,
      items: 'deliveries',
      errors: ['WEBHOOK_NOT_FOUND'],
      read: ({ caller, query }, part) => listDeliveries(deps.reads.sql, caller, filterOf(query), part),
      async onEmpty({ caller, query: { endpointId } }) {
        if (endpointId !== undefined) await requireEndpoint(deps.reads, caller, endpointId);
      },
      present: (delivery) => present(DeliverySchema, delivery),
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{deliveryId}`,
      operationId: 'readDelivery',
      summary: 'Read a delivery with its event and its last attempt',
      scope: 'webhooks:read',
      params: DeliveryPath,
      responses: {
        200: { description: 'The delivery, with its event and its last attempt.', schema: DeliveryDetailSchema },
      },
      async handle({ caller, params: { endpointId, deliveryId } }) {
        const { delivery, eventBody, attempts } =
          (await findDeliveryDetail(deps.reads.sql, caller, endpointId, deliveryId, 1)) ??
          (await notFoundBelow(deps.reads, caller, endpointId, 'DELIVERY_NOT_FOUND'));
        const [lastAttempt] = attempts;
        return {
          status: 200,
          body: {
            ...present(DeliverySchema, delivery),
            event: JSON.parse(eventBody) as object,
            body: eventBody,
            lastAttempt: lastAttempt === undefined ? null : presentAttempt(lastAttempt, delivery.eventId),
            diagnosis: diagnoseDelivery(delivery.failureReason, delivery.attempts, lastAttempt ?? null),
          },
        };
      },
    }),
    listRoute(deps, {
      path: `${PATH}/{deliveryId}/attempts`,
      operationId: 'listAttempts',
      summary: 'List the attempts of a delivery over all its runs, newest first',
      scope: 'webhooks:read',
      params: DeliveryPath,
      position: { id: idOf('att') },
      item: AttemptSchema,
      items: 'attempts',
      async read({ caller, params: { endpointId, deliveryId } }, part) {
        const { sql, prisma } = deps.reads;
        const { eventId } =
          (await findDelivery(sql, caller, endpointId, deliveryId)) ??
          (await notFoundBelow(deps.reads, caller, endpointId, 'DELIVERY_NOT_FOUND'));
        return (await listAttempts(prisma, deliveryId, part)).map((attempt) => ({ ...attempt, eventId }));
      },
      present: (attempt) => presentAttempt(attempt, attempt.eventId),
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
      scope: 'webhooks:write',
      params: DeliveryPath,
      body: ReplayBody,
      responses: { 202: { description: 'The delivery, pending again.', schema: DeliverySchema } },
      errors: [
        'REPLAY_COUNT_MISMATCH',
        'DELIVERY_NOT_TERMINAL',
        'EVENT_ERASED',
        'REPLAY_LIMIT_REACHED',
        'WEBHOOK_DISABLED',
      ],
      async handle({ caller, params: { endpointId, deliveryId }, body }) {
        const delivery = await sendAgain(deps, (tx) =>
          replayDelivery(tx, caller, endpointId, deliveryId, body.expectedReplayCount),
        );
        return { status: 202, body: present(DeliverySchema, delivery) };
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
      scope: 'webhooks:write',
      params: DeliveryPath,
      responses: { 202: { description: 'The delivery, due now.', schema: DeliverySchema } },
      errors: ['DELIVERY_NOT_PENDING', 'DELIVERY_IN_FLIGHT', 'WEBHOOK_DISABLED'],
      async handle({ caller, params: { endpointId, deliveryId } }) {
        const delivery = await sendAgain(deps, (tx) => retryDelivery(tx, caller, endpointId, deliveryId));
        return { status: 202, body: present(DeliverySchema, delivery) };
      },
    }),
  ];
}

/** @param eventId event of the delivery */
function presentAttempt(attempt: AttemptRow, eventId: string) {
  const { dnsMs, connectMs, tlsMs, firstByteMs, exchange } = attempt;
  const earlierAddresses = exchange?.earlierAddresses ?? [];
  return present(AttemptSchema, {
    ...attempt,
    timings: { dnsMs, connectMs, tlsMs, firstByteMs },
    responseHeaders: exchange?.responseHeaders ?? null,
    requestHeaders: exchange?.request ? shownRequestHeaders(exchange.request, { ...attempt, eventId }) : null,
    earlierAddresses,
    phases: attemptPhases({ ...attempt, earlierAddresses }),
    diagnosis: diagnoseAttempt(attempt),
  });
}

/** Null stands for any value. */
function filterOf(query: Static<TObject<typeof deliveryFilters & { endpointId: typeof ofEndpoint }>>) {
  return {
    endpointId: query.endpointId ?? null,
    roomId: query.roomId ?? null,
    status: query.status ?? null,
    eventType: query.eventType ?? null,
    failureReason: query.failureReason ?? null,
    since: query.since === undefined ? null : new Date(query.since),
    until: query.until === undefined ? null : new Date(query.until),
  };
}

type SendingDeps = Pick<Deps, 'database' | 'clock' | 'producer'>;

/** Sends a `webhook.test` event to this endpoint only, whatever events it subscribes to. */
async function testEndpoint(
  { database, clock, producer }: SendingDeps,
  tenant: Tenant,
  endpointId: string,
): Promise<DeliveryRow> {
  const { delivery, deliveries } = await database.transaction(async (tx) => {
    const endpoint = found(await lockWebhookEndpoint(tx, tenant, endpointId));
    if (!endpoint.enabled) throw new PublicError('WEBHOOK_DISABLED');
    const event = endpointEvent('webhook.test', tenant, endpoint, clock.now());
    const written = await writeEvents(tx, [event], { only: endpointId });
    const [{ id } = { id: '' }] = written.deliveries;
    return { delivery: found(await findDelivery(tx, tenant, endpointId, id)), deliveries: written.deliveries };
  });
  void producer.wakeDeliveries(deliveries);
  return delivery;
}

/**
 * Sends a delivery again, with a replay or a retry.
 * @throws PublicError for the conflict that forbids it.
 */
async function sendAgain(
  { database, producer }: SendingDeps,
  change: (tx: TypedSql) => Promise<ReplayResult | RetryResult>,
): Promise<DeliveryRow> {
  const result = await database.transaction(change);
  if (!result.ok) throw refusal(result);
  void producer.wakeDeliveries([result.wake]);
  return result.delivery;
}

function refusal(result: (ReplayResult | RetryResult) & { ok: false }): PublicError {
  switch (result.conflict) {
    case 'no endpoint':
      return new PublicError('WEBHOOK_NOT_FOUND');
    case 'no delivery':
      return new PublicError('DELIVERY_NOT_FOUND');
    case 'REPLAY_COUNT_MISMATCH':
      return new PublicError(result.conflict, {
        details: [{ path: 'body.expectedReplayCount', message: `the replay count is ${result.replayCount}` }],
      });
    default:
      return new PublicError(result.conflict);
  }
}
