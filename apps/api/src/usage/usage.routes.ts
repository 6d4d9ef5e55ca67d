import { DAY_MS, parseDay, presentUsageDay, USAGE_DAYS_MAX, type ErrorDetail } from '@callplane/core';
import { readUsage } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject, oneOf, orNull } from '../http/schemas.js';

const day = (description: string, example: string) =>
  Type.String({ format: 'date', description: `${description} A UTC day, \`YYYY-MM-DD\`.`, examples: [example] });

const UsageQuery = Type.Object({
  from: day('First day.', '2026-11-01'),
  to: day(`Last day, at most ${USAGE_DAYS_MAX - 1} days after the first one.`, '2026-11-30'),
  interval: Type.Optional({ ...oneOf(['day'], 'Length of an interval.'), default: 'day' }),
});

/** A schema cannot compare two days. It reports values that are no days. */
function checkOrder({ from, to }: Record<string, unknown>): ErrorDetail[] {
  const [first, last] = [from, to].map((text) => (typeof text === 'string' ? parseDay(text) : null));
  if (!first || !last) return [];
  if (last < first) return [{ path: 'query.to', message: 'must not be before from' }];
  if ((last.getTime() - first.getTime()) / DAY_MS < USAGE_DAYS_MAX) return [];
  return [{ path: 'query.to', message: `must be at most ${USAGE_DAYS_MAX - 1} days after from` }];
}

const UsageDaySchema = namedObject('UsageDay', {
  day: Type.String({ format: 'date', description: 'UTC day.' }),
  rooms: Type.Integer({ description: 'Rooms that had a participant.' }),
  participantSeconds: Type.Integer({ description: 'Duration of all sessions together, within the day.' }),
  participantMinutes: Type.Number({ description: 'The same in minutes.' }),
  peakParticipants: Type.Integer({ description: 'Maximum number of participants at one instant, over all rooms.' }),
  relayShare: orNull(
    Type.Number({
      description:
        'Share of the sessions that used a TURN server, of the sessions that reported their quality, from 0 to 1.',
    }),
  ),
  deliveries: Type.Integer({ description: 'Webhook deliveries that were created.' }),
  recordedMinutes: Type.Number({ description: 'Duration of the recordings that ended on the day.' }),
  convertedMinutes: Type.Number({ description: 'Duration of the files of recordings that were completed on the day.' }),
  recordedBytes: Type.Integer({ description: 'Size of these files.' }),
});

const UsageSchema = namedObject('Usage', {
  from: Type.String({ format: 'date' }),
  to: Type.String({ format: 'date' }),
  interval: oneOf(['day']),
  days: Type.Array(UsageDaySchema),
});

export function usageRoutes(deps: Deps): Route[] {
  return tagged('Usage', [
    defineRoute({
      method: 'get',
      path: '/v1/usage',
      operationId: 'readUsage',
      summary: 'Read the usage by day',
      description:
        'Usage of the environment by UTC day. Sessions that have not ended count until now. The figures of a day ' +
        'outlive its rooms.',
      scope: 'rooms:read',
      query: UsageQuery,
      validate: ({ query }) => checkOrder(query),
      responses: { 200: { description: 'One entry for each day.', schema: UsageSchema } },
      async handle({ caller, query: { from, to } }) {
        const [first, last] = [parseDay(from), parseDay(to)];
        if (first === null || last === null) throw new Error('the days were not validated');
        const days = await deps.readLimiter.heavy(caller.environmentId, () =>
          readUsage(deps.reads.sql, caller, first, last, deps.clock.now()),
        );
        return { status: 200, body: { from, to, interval: 'day', days: days.map(presentUsageDay) } };
      },
    }),
  ]);
}
