import type { AttemptOutcome } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

export interface AttemptStats {
  attempts: number;
  outcomes: Partial<Record<AttemptOutcome, number>>;
  /** Duration in milliseconds; null without attempts. */
  p50Ms: number | null;
  p95Ms: number | null;
}

/** `start` is null for all intervals together. */
export type AttemptInterval = AttemptStats & { start: Date | null };

/**
 * Counts the attempts of an endpoint that began in a time, for each interval with attempts and for all together. The
 * caller has checked that the endpoint belongs to the tenant. Reads only an index.
 * @param until the first instant after the time.
 */
export function readEndpointStats(
  db: TypedSql,
  endpointId: string,
  { from, until, intervalSeconds }: { from: Date; until: Date; intervalSeconds: number },
): PromiseLike<AttemptInterval[]> {
  return db.$queryRaw<AttemptInterval[]>`
    WITH attempt AS MATERIALIZED (
      SELECT date_bin(${intervalSeconds}::int * interval '1 second', started_at, ${from.toISOString()}::timestamptz) AS start,
        outcome, duration_ms
      FROM webhook_attempts
      WHERE endpoint_id = ${endpointId} AND started_at >= ${from.toISOString()}::timestamptz
        AND started_at < ${until.toISOString()}::timestamptz
    ), counted AS (
      SELECT start, outcome, count(*)::int AS count FROM attempt GROUP BY GROUPING SETS ((start, outcome), (outcome))
    ), timed AS (
      SELECT start, count(*)::int AS attempts,
        percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms) AS percentiles
      FROM attempt GROUP BY GROUPING SETS ((start), ())
    )
    SELECT timed.start, timed.attempts, percentiles[1] AS "p50Ms", percentiles[2] AS "p95Ms", (
      SELECT coalesce(json_object_agg(outcome, count), '{}') FROM counted WHERE counted.start IS NOT DISTINCT FROM timed.start
    ) AS outcomes
    FROM timed ORDER BY start NULLS FIRST`;
}
