import type { Tenant, WebhookFilter } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** Whether a value of an event is, has as an element, or begins with a value of a filter. Both are jsonb. */
const hasValue = (value: Prisma.Sql, wanted: Prisma.Sql): Prisma.Sql => Prisma.sql`
  CASE WHEN jsonb_typeof(${wanted}) = 'object'
    THEN jsonb_typeof(${value}) = 'string' AND starts_with(${value} #>> '{}', ${wanted} ->> 'prefix')
    ELSE ${value} @> ${wanted} END`;

/** The first condition decides nearly always, and costs a tenth of a loop over the values. */
const hasOneOf = (
  value: Prisma.Sql,
  values: Prisma.Sql,
): Prisma.Sql => Prisma.sql`(coalesce(${values} @> ${value}, false)
  OR CASE WHEN jsonb_typeof(${value}) IN ('string', 'array') THEN EXISTS (
    SELECT FROM jsonb_array_elements(${values}) AS wanted (item) WHERE ${hasValue(value, Prisma.sql`wanted.item`)}
  ) ELSE false END)`;

/**
 * Whether each path of a filter has one of its values in the data of an event. A missing path has none.
 * @param filter a `WebhookFilter` as jsonb
 * @param data jsonb
 */
export const matchesFilter = (filter: Prisma.Sql, data: Prisma.Sql): Prisma.Sql => Prisma.sql`NOT EXISTS (
  SELECT FROM jsonb_each(${filter}) AS part (path, allowed)
  WHERE NOT ${hasOneOf(Prisma.sql`(${data} #> string_to_array(part.path, '.'))`, Prisma.sql`part.allowed`)})`;

export interface TriedFilter {
  eventType: string;
  matches: boolean;
  /** `value` is null if the event has nothing at the path. */
  paths: { path: string; value: unknown; matches: boolean }[];
}

/**
 * Evaluates a filter for a stored event as {@link matchesFilter} does for new ones.
 * @returns null when the environment has no such event.
 */
export async function tryFilter(
  db: TypedSql,
  { environmentId }: Tenant,
  eventId: string,
  filter: WebhookFilter | null,
): Promise<TriedFilter | null> {
  const [tried] = await db.$queryRaw<TriedFilter[]>`
    WITH event AS MATERIALIZED (
      SELECT type, body::jsonb -> 'data' AS data, ${JSON.stringify(filter ?? {})}::jsonb AS filter
      FROM events WHERE id = ${eventId} AND environment_id = ${environmentId}
    )
    SELECT type AS "eventType", ${matchesFilter(Prisma.sql`filter`, Prisma.sql`data`)} AS matches, (
      SELECT coalesce(json_agg(json_build_object('path', path, 'value', value,
        'matches', ${hasOneOf(Prisma.sql`parts.value`, Prisma.sql`parts.allowed`)}) ORDER BY path), '[]')
      FROM (
        SELECT path, allowed, data #> string_to_array(path, '.') AS value FROM jsonb_each(filter) AS part (path, allowed)
      ) parts
    ) AS paths
    FROM event`;
  return tried ?? null;
}
