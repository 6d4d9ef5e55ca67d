import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import fc from 'fast-check';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { createResources, forgedCursor, listsOf, type ListUnderTest } from '../hostile-requests.testkit.js';

let api: TestApi;
let lists: ListUnderTest[];
beforeAll(async () => {
  api = await startTestApi();
  lists = listsOf(await createResources(api));
});

const get = (path: string, query: Record<string, string>) =>
  api.call('GET', `${path}?${new URLSearchParams(query).toString()}`);

const forge = (list: ListUnderTest, filters: Record<string, string>, position: unknown) =>
  forgedCursor(list, api.tenant.environmentId, filters, position);

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
