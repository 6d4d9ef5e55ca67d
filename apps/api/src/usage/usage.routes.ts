import { DAY_MS, parseDay, presentUsageDay, USAGE_DAYS_MAX, type ErrorDetail } from '@callplane/core';
import { readUsage } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { oneOf, orNull } from '../http/schemas.js';

const day = (description: string) =>
  Type.String({ 'x-document': { format: 'date' }, description: `${description} A UTC day, \`YYYY-MM-DD\`.` });

const UsageQuery = Type.Object({
  from: day('First day.'),
  to: day(`Last day, at most ${USAGE_DAYS_MAX - 1} days after the first one.`),
  interval: Type.Optional({ ...oneOf(['day'], 'Length of an interval.'), default: 'day' }),
});

/** The failures that the schema cannot express. */
function checkDays(query: Record<string, unknown>): ErrorDetail[] {
  const parsed = (['from', 'to'] as const).map((name) => {
    const text = query[name];
    // The schema reports a missing or repeated parameter.
    return { name, text, day: typeof text === 'string' ? parseDay(text) : null };
  });
  const wrong = parsed.filter((one) => typeof one.text === 'string' && one.day === null);
  if (wrong.length > 0) {
    return wrong.map(({ name }) => ({
      path: `query.${name}`,
      message: 'must be a day like 2026-11-20, from 1970 to 9999',
    }));
  }
  const [from, to] = parsed.map((one) => one.day?.getTime());
  if (from === undefined || to === undefined) return [];
  if (to < from) return [{ path: 'query.to', message: 'must not be before from' }];
  const days = (to - from) / DAY_MS + 1;
  if (days <= USAGE_DAYS_MAX) return [];
  return [{ path: 'query.to', message: `must be at most ${USAGE_DAYS_MAX - 1} days after from` }];
}

const UsageDaySchema = Type.Object(
  {
    day: Type.String({ format: 'date', description: 'UTC day.' }),
    rooms: Type.Integer({ description: 'Rooms that had a participant.' }),
    participantSeconds: Type.Integer({ description: 'Duration of all sessions together, within the day.' }),
    participantMinutes: Type.Number({ description: 'The same in minutes.' }),
    peakParticipants: Type.Integer({ description: 'Maximum number of participants at one instant, over all rooms.' }),
    relayShare: orNull(
      Type.Number({
        description:
          'Share of the sessions that used a TURN server, among those that reported their quality, from 0 to 1.',
      }),
    ),
    deliveries: Type.Integer({ description: 'Webhook deliveries that were created.' }),
  },
  { title: 'UsageDay', additionalProperties: false },
);

const UsageSchema = Type.Object(
  {
    from: Type.String({ format: 'date' }),
    to: Type.String({ format: 'date' }),
    interval: oneOf(['day']),
    days: Type.Array(UsageDaySchema),
  },
  { title: 'Usage', additionalProperties: false },
);

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
        const days = await deps.readTurns.heavy(caller.environmentId, () =>
          readUsage(deps.database, caller, first, last, deps.clock.now()),
        );
        return { status: 200, body: { from, to, interval: 'day', days: days.map(presentUsageDay) } };
      },
    }),
  ];
}
