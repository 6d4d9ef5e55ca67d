import { mayUse, PublicError } from '@callplane/core';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { OverviewSchema } from './overview.schemas.js';
import { readOverview } from './overview.service.js';

export function overviewRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/overview',
      operationId: 'readOverview',
      summary: 'Read what is live',
      description:
        'Rooms, participants and joins need `rooms:read`, deliveries and endpoints `webhooks:read`. A part without its ' +
        'scope is null. No figure counts more than 10,000 rows. `GET /v1/usage` has the figures of days.',
      tag: 'Usage',
      scope: null,
      errors: ['INSUFFICIENT_SCOPE'],
      responses: { 200: { description: 'The figures at this moment.', schema: OverviewSchema } },
      async handle({ caller }) {
        const may = { calls: mayUse(caller, 'rooms:read'), webhooks: mayUse(caller, 'webhooks:read') };
        if (!may.calls && !may.webhooks) throw new PublicError('INSUFFICIENT_SCOPE');
        const what = `overview ${may.calls} ${may.webhooks}`;
        const body = await deps.heavyReads.read(caller.environmentId, what, () => readOverview(deps, caller, may));
        return { status: 200, body };
      },
    }),
  ];
}
