import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import fc from 'fast-check';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { createResources, pathOf } from '../hostile-requests.testkit.js';
import { apiRoutes } from '../routes.js';
import type { Route } from './route.js';

/** The list of a route with cursors. */
interface ListUnderTest {
  name: string;
  path: string;
  params: Record<string, string>;
  /** The query parameter of its cursors. */
  parameter: string;
  /** A value for each of its filters. */
  filters: [string, string][];
}

let api: TestApi;
let lists: ListUnderTest[];
beforeAll(async () => {
  api = await startTestApi();
  const values = await createResources(api);
  const filterValues: Record<string, string> = {
    ...values,
    name: 'Room',
    namePrefix: 'R',
    externalId: 'user',
    type: 'webhook.test',
    eventType: 'webhook.test',
    since: '2026-01-01T00:00:00Z',
    until: '2999-01-01T00:00:00Z',
  };
  lists = apiRoutes({} as never).flatMap((route) =>
    route.list === undefined ? [] : [listOf(route, route.list, values, filterValues)],
  );
});

function listOf(
  { path, query }: Route,
  { name, parameter, unbound }: NonNullable<Route['list']>,
  values: Record<string, string>,
  filterValues: Record<string, string>,
): ListUnderTest {
  const { properties } = query as unknown as { properties: Record<string, { enum?: string[] }> };
  const others = new Set(['limit', 'projectId', 'environmentId', parameter, ...unbound]);
  const filters = Object.keys(properties)
    .filter((filter) => !others.has(filter))
    .map((filter): [string, string] => {
      const value = filterValues[filter] ?? properties[filter]?.enum?.[0];
      if (value === undefined) throw new Error(`no value for the filter ${filter} of ${path}`);
      return [filter, value];
    });
  const params = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => [param!, values[param!]!]));
  return { name, path: pathOf(path, 'GET', values), params, parameter, filters };
}

const get = (path: string, query: Record<string, string>) =>
  api.call('GET', `${path}?${new URLSearchParams(query).toString()}`);

/** Forges a cursor with a valid check. Any reader of the source code can do this. */
function forge(list: ListUnderTest, filters: Record<string, string>, position: unknown): string {
  const body = Buffer.from(typeof position === 'string' ? position : JSON.stringify(position)).toString('base64url');
  const scope = JSON.stringify([
    list.name,
    api.tenant.environmentId,
    Object.entries(list.params).sort(([a], [b]) => (a < b ? -1 : 1)),
    Object.entries(filters),
  ]);
  return `2.${body}.${createHash('sha256').update(`${scope}.${body}`).digest('base64url').slice(0, 8)}`;
}

const isRefused = async (list: ListUnderTest, query: Record<string, string>) => {
  const { status, body } = await get(list.path, query);
  expect([status, query, body.error?.details?.map((d: { path: string }) => d.path)]).toEqual([
    400,
    query,
    [`query.${list.parameter}`],
  ]);
};

describe('a cursor', () => {
  test('works in its own list with its own filters, and is rejected elsewhere', async () => {
    expect(lists.length).toBeGreaterThanOrEqual(11);
    for (const list of lists) {
      const { nextCursor } = (await get(list.path, { limit: '1' })).body;
      expect([list.path, nextCursor]).toEqual([list.path, expect.any(String)]);
      expect((await get(list.path, { [list.parameter]: nextCursor })).status).toBe(200);
      for (const other of lists.filter(({ path }) => path !== list.path)) {
        await isRefused(other, { [other.parameter]: nextCursor });
      }
      for (const filter of list.filters) {
        const filters = Object.fromEntries([filter]);
        await isRefused(list, { ...filters, [list.parameter]: nextCursor });
        const filtered = (await get(list.path, { ...filters, limit: '1' })).body.nextCursor;
        if (filtered === null) continue;
        expect((await get(list.path, { ...filters, [list.parameter]: filtered })).status).toBe(200);
        await isRefused(list, { [list.parameter]: filtered });
      }
    }
  });

  test.each([
    ...['["\\u0000"]', 'null', '[{}]', '[5]', '[]', '{}', '[null]', '', '[', '["room_x"]', '[["room_x"]]'],
    ...[
      '["evt_01m7xhkw0cfvqteeeq2c3fv3qk","1","room_1","99999999999"]',
      '["evt_01m7xhkw0cfvqteeeq2c3fv3qk","1",null,1e300]',
    ],
    ...[
      '["evt_01m7xhkw0cfvqteeeq2c3fv3qk","1","room_1",2147483648]',
      '["1970-01-01T00:00:60.000Z","part_01m7xhkw0cfvqteeeq2c3fv3qk"]',
    ],
    ...['[1e300,"part_01m7xhkw0cfvqteeeq2c3fv3qk"]', '[-1,"part_01m7xhkw0cfvqteeeq2c3fv3qk"]'],
  ])('with the position %s and a valid check is rejected by every list', async (position) => {
    for (const list of lists) await isRefused(list, { [list.parameter]: forge(list, {}, position) });
  });

  test('with arbitrary content never causes a 500', async () => {
    const id = fc
      .constantFrom(
        ...(['room', 'participant', 'session', 'webhookEndpoint', 'delivery', 'attempt', 'recovery', 'event'] as const),
      )
      .map(newId);
    const value = fc.oneof(
      id,
      fc.constantFrom('\u0000', '\ud800', '2026-01-01T00:00:00.000Z', '9007199254740993', '', '0', null, -0),
      fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
      fc.integer(),
      fc.double(),
      fc.jsonValue({ maxDepth: 2 }),
    );
    const position = fc.oneof(
      // Positions that resemble real ones.
      { weight: 2, arbitrary: fc.tuple(id) },
      { weight: 2, arbitrary: fc.tuple(fc.oneof(fc.nat(), fc.double()), id) },
      { weight: 2, arbitrary: fc.tuple(id, value, fc.constantFrom(null, 'room_1'), fc.oneof(fc.nat(), value)) },
      { weight: 4, arbitrary: fc.array(value, { maxLength: 5 }) },
      fc.jsonValue(),
      fc.string({ unit: 'binary' }),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...lists), position, fc.nat(), async (list, forgedPosition, index) => {
        // Without filters, or with one of them.
        const filter = list.filters[index % (list.filters.length + 1)];
        const filters = filter === undefined ? {} : Object.fromEntries([filter]);
        const cursor = forge(list, filters, forgedPosition);
        const { status } = await get(list.path, { ...filters, [list.parameter]: cursor });
        expect([200, 400]).toContain(status);
      }),
      { numRuns: 200 },
    );
  });

  test('with 5,000 characters is rejected', async () => {
    for (const list of lists) await isRefused(list, { [list.parameter]: forge(list, {}, ['x'.repeat(5000)]) });
  });
});
