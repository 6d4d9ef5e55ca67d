import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { judgeTenant } from '../webhooks/tenant-query.js';
import { EventPage, ListEventsQuery } from './events.schemas.js';
import { pageOfEvents } from './events.service.js';

export function eventRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/events',
      operationId: 'listEvents',
      summary: 'List events, oldest first, to heal gaps',
      description:
        'Each is the body that webhooks send. With `roomId` they come by their sequence, else in the order of their ' +
        'transactions: an event that is committed late is never skipped, and appears once no older transaction is open.',
      tag: 'Events',
      scope: 'webhooks:read',
      query: ListEventsQuery,
      judge: judgeTenant,
      responses: { 200: { description: 'Events after that position.', schema: EventPage } },
      async handle({ caller, query }) {
        const { events, nextCursor } = await pageOfEvents(deps, caller, query);
        return { status: 200, body: { data: events.map(({ body }) => JSON.parse(body) as object), nextCursor } };
      },
    }),
  ];
}
