import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { checkTenant, TenantQuery, timeFailures } from '../http/checks.js';
import { EVENT_LIST, EventPage, EventPath, EventSchema, ListEventsQuery } from './events.schemas.js';
import { pageOfEvents, readEvent } from './events.service.js';

export function eventRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/events',
      operationId: 'listEvents',
      summary: 'List events, oldest first, or wait for them',
      description:
        'Each item is the body that webhooks send. With `roomId`, events are ordered by their sequence, otherwise by ' +
        'their transactions. An event appears once no older transaction is open, so an event that commits late is ' +
        'never skipped. With `wait`, the answer comes with the next event, usually within a second of its commit, or ' +
        'empty when the time is over.',
      tag: 'Events',
      scope: 'webhooks:read',
      query: ListEventsQuery,
      list: EVENT_LIST,
      waits: true,
      validate: (parts) => [...checkTenant(parts), ...timeFailures('query', parts.query)],
      errors: ['ROOM_NOT_FOUND'],
      responses: { 200: { description: 'One page of events after the position.', schema: EventPage } },
      async handle(call) {
        const { rows, nextCursor } = await pageOfEvents(deps, call.caller, call.query, call.cursor, call);
        return { status: 200, body: { data: rows.map(({ body }) => JSON.parse(body) as object), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/events/{eventId}',
      operationId: 'readEvent',
      summary: 'Read an event',
      description:
        'The body that webhooks send. Events are kept for 30 days, and as long as a delivery refers to them.',
      tag: 'Events',
      scope: 'webhooks:read',
      params: EventPath,
      query: TenantQuery,
      validate: checkTenant,
      errors: ['EVENT_NOT_FOUND'],
      responses: { 200: { description: 'The event.', schema: EventSchema } },
      async handle({ caller, params }) {
        return { status: 200, body: JSON.parse(await readEvent(deps, caller, params.eventId)) as object };
      },
    }),
  ];
}
