import type { TypedSql } from '../client/database.js';

/** A process of an app that is connected to this database. */
export interface RunningApp {
  /** Such as `webhook-worker`. */
  app: string;
  /** Process id and host, such as `4711@node-2`. */
  instance: string;
  /** Time since its latest statement, in milliseconds; null if this role may not see it. */
  silentMs: number | null;
}

/** Lists the processes by the names of their connections. A worker runs a statement at least every 10 s, its scan. */
export function listRunningApps(db: TypedSql): PromiseLike<RunningApp[]> {
  return db.$queryRaw<RunningApp[]>`
    SELECT split_part(application_name, ' ', 2) AS app, split_part(application_name, ' ', 3) AS instance,
      (extract(epoch FROM clock_timestamp() - max(state_change)) * 1000)::float8 AS "silentMs"
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'callplane %' GROUP BY application_name
    ORDER BY application_name`;
}
