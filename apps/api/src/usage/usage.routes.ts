import { parseDay, presentUsageDay } from '@callplane/core';
import { readUsage } from '@callplane/db';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { checkDays, UsageQuery, UsageSchema } from './usage.schemas.js';

export function usageRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/usage',
      operationId: 'readUsage',
      summary: 'Read the usage by day',
      description:
        'Usage of the environment by UTC day. Sessions that have not ended count until now. The figures of a day ' +
        'outlive its rooms.',
      tag: 'Usage',
      scope: 'rooms:read',
      query: UsageQuery,
      validate: ({ query }) => checkDays(query),
      responses: { 200: { description: 'One entry for each day.', schema: UsageSchema } },
      async handle({ caller, query: { from, to } }) {
        const [first, last] = [parseDay(from), parseDay(to)];
        if (first === null || last === null) throw new Error('the days were not validated');
        const days = await deps.heavyReads.read(caller.environmentId, `usage ${from} ${to}`, () =>
          readUsage(deps.database.sql, caller, first, last, deps.clock.now()),
        );
        return { status: 200, body: { from, to, interval: 'day', days: days.map(presentUsageDay) } };
      },
    }),
  ];
}
