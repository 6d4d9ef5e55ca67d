import { Prisma } from '../generated/client.js';

/** What every list of an operator may be restricted to. */
export interface ListFilter {
  environmentId: string | null;
  /** Rows that were created from this time on. */
  since: Date | null;
  limit: number;
}

/** The WHERE clause of a list whose table has the columns environment_id and created_at. */
export function conditions(filter: ListFilter, more: readonly (Prisma.Sql | null)[]): Prisma.Sql {
  const present = [
    ...more,
    filter.environmentId === null ? null : Prisma.sql`environment_id = ${filter.environmentId}`,
    filter.since === null ? null : Prisma.sql`created_at >= ${filter.since.toISOString()}::timestamptz`,
  ].filter((condition) => condition !== null);
  return present.length === 0 ? Prisma.empty : Prisma.sql`WHERE ${Prisma.join(present, ' AND ')}`;
}
