import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { checkTenant } from '../webhooks/tenant-query.js';
import { EVENT_LIST, EventPage, ListEventsQuery } from './events.schemas.js';
import { pageOfEvents } from './events.service.js';

export function eventRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/events',
      operationId: 'listEvents',
      summary: 'List events, oldest first',
      description:
        'Each item is the body that webhooks send. With `roomId`, events are ordered by their sequence, otherwise by ' +
        'their transactions. An event appears once no older transaction is open, so an event that commits late is ' +
        'never skipped.',
      tag: 'Events',
      scope: 'webhooks:read',
      query: ListEventsQuery,
      list: EVENT_LIST,
      validate: checkTenant,
      errors: ['ROOM_NOT_FOUND'],
      responses: { 200: { description: 'One page of events after the position.', schema: EventPage } },
      async handle({ caller, query, cursor }) {
        const { rows, nextCursor } = await pageOfEvents(deps, caller, query, cursor);
        return { status: 200, body: { data: rows.map(({ body }) => JSON.parse(body) as object), nextCursor } };
      },
    }),
  ];
}
