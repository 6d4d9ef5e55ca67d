import type { Tenant } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { texts } from './sql.js';

/** A request for one row. The statement that reads several compares each row's environment with it. */
export interface RowRequest {
  tenant: Tenant;
  id: string;
}

/** The table `request (id, environment_id, at)` of a statement that reads rows for several requests. */
function requestTable(requests: readonly RowRequest[]): Prisma.Sql {
  return Prisma.sql`unnest(${texts(requests.map(({ id }) => id))}, ${texts(requests.map(({ tenant }) => tenant.environmentId))})
    WITH ORDINALITY AS request (id, environment_id, at)`;
}

/**
 * Reads the rows of several requests with one statement. Requests for the same row share it.
 * @param read gets the table `request (id, environment_id, at)`, and returns each row with the `at` of its request.
 * @returns the rows in the order of the requests; null for those without a row.
 */
export async function readRequested<Row extends object>(
  requests: readonly RowRequest[],
  read: (table: Prisma.Sql) => PromiseLike<(Row & { at: number })[]>,
): Promise<(Row | null)[]> {
  const distinct = new Map<string, RowRequest>();
  const keys = requests.map((request) => {
    const key = `${request.tenant.environmentId} ${request.id}`;
    distinct.set(key, request);
    return key;
  });
  const rows = await read(requestTable([...distinct.values()]));
  const found = new Map<number, Row>();
  for (const { at, ...row } of rows) found.set(at, row as unknown as Row);
  const numbers = new Map([...distinct.keys()].map((key, index) => [key, index + 1]));
  return keys.map((key) => found.get(numbers.get(key) ?? 0) ?? null);
}
