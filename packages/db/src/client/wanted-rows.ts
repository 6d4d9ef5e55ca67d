import type { Tenant } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { texts } from './sql.js';

/**
 * A request for one row. The statement that reads several compares the environment with the environment of each row.
 */
export interface WantedRow {
  tenant: Tenant;
  id: string;
}

/** The table `wanted (id, environment_id, at)` of a statement that reads rows for several requests. */
function wantedTable(wanted: readonly WantedRow[]): Prisma.Sql {
  return Prisma.sql`unnest(${texts(wanted.map(({ id }) => id))}, ${texts(wanted.map(({ tenant }) => tenant.environmentId))})
    WITH ORDINALITY AS wanted (id, environment_id, at)`;
}

/**
 * Reads the rows of several requests with one statement. Requests for the same row share it.
 * @param read gets the table `wanted (id, environment_id, at)`, and returns each row with the `at` of its request.
 * @returns the rows in the order of the requests; null for those without a row.
 */
export async function readWanted<Row extends object>(
  wanted: readonly WantedRow[],
  read: (table: Prisma.Sql) => PromiseLike<(Row & { at: number })[]>,
): Promise<(Row | null)[]> {
  const distinct = new Map<string, WantedRow>();
  const keys = wanted.map((request) => {
    const key = `${request.tenant.environmentId} ${request.id}`;
    distinct.set(key, request);
    return key;
  });
  const rows = await read(wantedTable([...distinct.values()]));
  const found = new Map<number, Row>();
  for (const { at, ...row } of rows) found.set(at, row as unknown as Row);
  const numbers = new Map([...distinct.keys()].map((key, index) => [key, index + 1]));
  return keys.map((key) => found.get(numbers.get(key) ?? 0) ?? null);
}
