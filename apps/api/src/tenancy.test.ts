import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { startTestApi, type TestApi, type TestTenant } from './api.testkit.js';
import {
  createResources,
  forgedCursor,
  listsOf,
  type ListUnderTest,
  type PathValues,
} from './hostile-requests.testkit.js';
import { bodyExamples } from './openapi/examples.js';
import { apiRoutes } from './routes.js';

let api: TestApi;
let stranger: TestTenant;
/** The ids of resources of the tenant, and ids of the same form that do not exist. */
let owned: PathValues;
let missing: PathValues;
let stateBefore: string[];
beforeAll(async () => {
  api = await startTestApi();
  stranger = await api.newTenant();
  owned = await createResources(api);
  missing = Object.fromEntries(
    Object.entries(owned).map(([name, id]) => [name, id.replace(/[0-9a-z]{26}$/, '0'.repeat(26))]),
  );
  stateBefore = await state();
});

/** The tenant's own view of its resources. */
function state(): Promise<string[]> {
  const { roomId, endpointId, recoveryId } = owned;
  const paths = [
    ...['', '/participants', '/tokens', '/sessions', '/media', '/runtime-operation'].map(
      (list) => `/v1/rooms/${roomId}${list}`,
    ),
    ...['', '/deliveries', `/recoveries/${recoveryId}`].map((list) => `/v1/webhooks/${endpointId}${list}`),
  ];
  const headers = { 'x-request-id': 'same' };
  return Promise.all(paths.map(async (path) => (await api.call('GET', path, { headers })).text));
}

/** Every route with the id of a resource, in its path, its query or its body. */
const requests: { method: string; path: string; body?: unknown }[] = [
  ...apiRoutes({} as never)
    .filter(({ path }) => path.includes('{'))
    .map(({ method, path, body }) => ({
      method,
      path,
      ...(body === undefined ? {} : { body: bodyExamples(body).minimal }),
    })),
  { method: 'get', path: '/v1/deliveries?endpointId={endpointId}' },
  { method: 'post', path: '/v1/turn/credentials', body: { roomId: '{roomId}', sessionId: '{sessionId}' } },
];

describe('tenancy', () => {
  test("answers for another tenant's resource exactly as for one that does not exist", async () => {
    expect(requests.length).toBeGreaterThan(30);
    for (const { method, path, body } of requests) {
      const answer = async (values: PathValues) => {
        const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!);
        const sent = body === undefined ? {} : { body: JSON.parse(fill(JSON.stringify(body))) as unknown };
        const headers = { 'x-request-id': 'same' };
        return api.call(method, fill(path), { key: stranger.key, headers, ...sent });
      };
      const [foreign, nobody] = [await answer(owned), await answer(missing)];
      expect([method, path, foreign.status, foreign.text]).toEqual([method, path, 404, nobody.text]);
    }
  });

  test("leaves another tenant's resources unchanged", async () => {
    expect(await state()).toEqual(stateBefore);
  });

  test('lists only rows of the own tenant, and rejects a cursor of another tenant', async () => {
    await api.room();
    expect((await api.call('GET', '/v1/rooms', { key: stranger.key })).body.data).toEqual([]);
    const { nextCursor } = (await api.call('GET', '/v1/rooms?limit=1')).body;
    const foreign = await api.call('GET', `/v1/rooms?cursor=${nextCursor}`, { key: stranger.key });
    expect([foreign.status, foreign.body.error.details[0].path]).toEqual([400, 'query.cursor']);
    const { key } = stranger;
    expect((await api.call('GET', '/v1/webhooks', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/events', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/deliveries', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/rooms?name=A%20room', { key })).body.data).toEqual([]);
    const events = await api.call('GET', `/v1/events?roomId=${owned['roomId']}`, { key });
    expect([events.status, events.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    const [event] = (await api.call('GET', `/v1/events?roomId=${owned['roomId']}`)).body.data;
    expect((await api.call('GET', `/v1/events?after=${event.id}`, { key })).status).toBe(400);
  });

  test('answers a forged cursor with ids of another tenant as one with ids that do not exist', async () => {
    const own = api.as(await api.newTenant());
    const lists = listsOf(await createResources(own));
    // Newer than the rows of the lists, which begin with the newest.
    const foreign = api.as(await api.newTenant());
    const foreignLists = listsOf(await createResources(foreign));
    const headers = { 'x-request-id': 'same' };
    const get = (by: TestApi, { path }: ListUnderTest, query: Record<string, string>) =>
      by.call('GET', `${path}?${new URLSearchParams(query).toString()}`, { headers });
    let answered = 0;
    for (const [index, list] of lists.entries()) {
      const theirs = foreignLists[index]!;
      for (const filter of [[], ...list.filters.map((each) => [each])]) {
        const [filters, theirFilters] = [filter, theirs.filters.filter(([name]) => filter[0]?.[0] === name)].map(
          (each) => Object.fromEntries(each) as Record<string, string>,
        ) as [Record<string, string>, Record<string, string>];
        const { nextCursor } = (await get(foreign, theirs, { ...theirFilters, limit: '1' })).body;
        if (nextCursor === null) continue;
        const position = Buffer.from(nextCursor.split('.')[1], 'base64url').toString();
        const answer = (text: string) => {
          const cursor = forgedCursor(list, own.tenant.environmentId, filters, text);
          return get(own, list, { ...filters, [list.parameter]: cursor });
        };
        // Ids of the same millisecond, which nobody has.
        const nobody = await answer(position.replaceAll(/[0-9a-z]{16}"/g, `${'0'.repeat(16)}"`));
        const given = await answer(position);
        expect([list.path, filters, given.status, given.text]).toEqual([
          list.path,
          filters,
          nobody.status,
          nobody.text,
        ]);
        if (given.status === 200 && given.body.data.length > 0) answered += 1;
      }
    }
    // Otherwise the cursors would show nothing in any case.
    expect(answered).toBeGreaterThan(lists.length);
  });

  test('treats another environment of the same project as another tenant', async () => {
    const environmentId = newId('environment');
    await api.database.prisma.environment.create({
      data: { id: environmentId, projectId: api.tenant.projectId, name: 'other', createdAt: new Date() },
    });
    const key = await api.newKey(environmentId);
    expect((await api.call('GET', `/v1/rooms/${owned['roomId']}`, { key })).status).toBe(404);
  });
});
