import { ATTEMPT_OUTCOMES, DAY_MS, TERMINAL_RETENTION_DAYS, type ErrorDetail } from '@callplane/core';
import { findWebhookEndpoint, readEndpointStats, type AttemptStats } from '@callplane/db';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, type UntaggedRoute } from '../http/route.js';
import { namedObject, oneOf, orNull, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import { found } from './endpoints.service.js';

const STATS_INTERVALS = { minute: 60, hour: 3600, day: 86_400 } as const;
/** A day of minutes, or a month of hours. */
const STATS_INTERVALS_MAX = 1440;
type Interval = keyof typeof STATS_INTERVALS;

const StatsQuery = Type.Object({
  from: Type.Optional({
    ...timestamp(
      `Begin of the first interval; by default a day before \`to\`. Attempts are kept for ${TERMINAL_RETENTION_DAYS} days.`,
    ),
    examples: ['2026-11-20T10:00:00.000Z'],
  }),
  to: Type.Optional({
    ...timestamp(`End of the time, at most ${STATS_INTERVALS_MAX} intervals after \`from\`; by default now.`),
    examples: ['2026-11-20T12:00:00.000Z'],
  }),
  interval: Type.Optional({
    ...oneOf(Object.keys(STATS_INTERVALS) as Interval[], 'Length of an interval.'),
    default: 'hour',
  }),
});

/** In milliseconds. */
function rangeOf({ from, to }: { from?: string; to?: string }, now: Date): { begin: number; end: number } {
  const end = to === undefined ? now.getTime() : Date.parse(to);
  return { begin: from === undefined ? end - DAY_MS : Date.parse(from), end };
}

/** A schema cannot compare two times. It reports values that are no times. */
function checkRange(query: { from?: string; to?: string; interval?: Interval }, now: Date): ErrorDetail[] {
  const { begin, end } = rangeOf(query, now);
  const seconds = STATS_INTERVALS[query.interval ?? 'hour'] as number | undefined;
  if (Number.isNaN(end - begin) || seconds === undefined) return [];
  if (end <= begin) return [{ path: 'query.to', message: 'must be after from' }];
  if (end - begin <= seconds * 1000 * STATS_INTERVALS_MAX) return [];
  return [{ path: 'query.to', message: `must be at most ${STATS_INTERVALS_MAX} intervals after from` }];
}

const figures = {
  attempts: Type.Integer({ description: 'Attempts that began in the time and have ended.' }),
  outcomes: namedObject(
    'AttemptOutcomes',
    Object.fromEntries(ATTEMPT_OUTCOMES.map((outcome) => [outcome, Type.Integer()])),
    { description: 'The attempts by their `outcome`.' },
  ),
  p50Ms: orNull(Type.Integer({ description: 'Half of the attempts took at most so long. Null without attempts.' })),
  p95Ms: orNull(Type.Integer({ description: '95 % of the attempts took at most so long. Null without attempts.' })),
};

const StatsSchema = namedObject('WebhookStats', {
  from: timestamp('Begin of the first interval.'),
  to: timestamp('End of the time.'),
  interval: oneOf(Object.keys(STATS_INTERVALS) as Interval[]),
  total: namedObject('WebhookStatsTotal', figures),
  intervals: Type.Array(
    namedObject('WebhookStatsInterval', { start: timestamp('Begin of the interval.'), ...figures }),
  ),
});

const NONE: AttemptStats = { attempts: 0, outcomes: {}, p50Ms: null, p95Ms: null };

function present({ attempts, outcomes, p50Ms, p95Ms }: AttemptStats = NONE) {
  const all = Object.fromEntries(ATTEMPT_OUTCOMES.map((outcome) => [outcome, outcomes[outcome] ?? 0]));
  return { attempts, outcomes: all, p50Ms, p95Ms };
}

export function endpointStatsRoutes(deps: Deps): UntaggedRoute[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/webhooks/{endpointId}/stats',
      operationId: 'readWebhookStats',
      summary: 'Read the attempts, outcomes and durations of an endpoint over time',
      description: 'One entry for each interval, also without attempts. The durations are exact.',
      scope: 'webhooks:read',
      params: EndpointPath,
      query: StatsQuery,
      // Parameters are texts, of any content.
      validate: ({ query }) => checkRange(query as Static<typeof StatsQuery>, deps.clock.now()),
      responses: { 200: { description: 'The figures.', schema: StatsSchema } },
      async handle({ caller, params: { endpointId }, query }) {
        const { interval = 'hour' } = query;
        found(await findWebhookEndpoint(deps.reads.sql, caller, endpointId));
        const { begin, end } = rangeOf(query, deps.clock.now());
        const [from, until] = [new Date(begin), new Date(end)];
        const intervalSeconds = STATS_INTERVALS[interval];
        const rows = await deps.readLimiter.heavy(caller.environmentId, async () =>
          readEndpointStats(deps.reads.sql, endpointId, { from, until, intervalSeconds }),
        );
        const byStart = new Map(rows.map((row) => [row.start?.getTime(), row]));
        const count = Math.ceil((end - begin) / (intervalSeconds * 1000));
        const intervals = Array.from({ length: count }, (_, at) => {
          const start = begin + at * intervalSeconds * 1000;
          return { start: new Date(start).toISOString(), ...present(byStart.get(start)) };
        });
        const total = present(byStart.get(undefined));
        return {
          status: 200,
          body: { from: from.toISOString(), to: until.toISOString(), interval, total, intervals },
        };
      },
    }),
  ];
}
