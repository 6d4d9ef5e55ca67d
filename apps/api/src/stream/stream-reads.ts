import type { Clock } from '@callplane/core';
import {
  listEventChanges,
  markAttempts,
  markEndpoints,
  markRecoveries,
  newestEvents,
  type Database,
} from '@callplane/db';
import { BEFORE_ALL } from '../events/event-waiter.js';
import type { OnReadFailed } from './read-failures.js';
import type { StreamReads } from './stream-hub.js';

/** What streams read of PostgreSQL. */
export function streamReads({ sql }: Pick<Database, 'sql'>, clock: Clock, onFailed: OnReadFailed): StreamReads {
  return {
    onFailed,
    feed: (tenant) => ({
      newest: async () => (await newestEvents(sql, [tenant.environmentId])).get(tenant.environmentId) ?? BEFORE_ALL,
      after: (after, until, limit) => listEventChanges(sql, tenant, { after, until, limit }),
    }),
    watch: {
      now: () => clock.now(),
      endpoints: (environmentIds) => markEndpoints(sql, environmentIds),
      attempts: (environmentIds, page) => markAttempts(sql, environmentIds, page),
      recoveries: (environmentIds) => markRecoveries(sql, environmentIds),
    },
  };
}
