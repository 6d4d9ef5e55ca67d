import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import fc from 'fast-check';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { attempt, delivery, webhook } from '../webhooks/webhooks.testkit.js';

let api: TestApi;
/** Every list, with the query parameter of its cursors and an optional filter. */
let lists: {
  name: string;
  path: string;
  params: Record<string, string>;
  parameter: string;
  filter: [string, string] | null;
}[];
beforeAll(async () => {
  api = await startTestApi();
  const [room] = [await api.room(), await api.room()];
  const endpoint = await webhook(api);
  await webhook(api);
  const made = await delivery(api, endpoint.path);
  await delivery(api, endpoint.path);
  for (const n of [1, 2]) await attempt(api, made.id, n);
  const { prisma } = api.database;
  for (let n = 0; n < 2; n++) {
    const { body } = await api.call('POST', `/v1/rooms/${room}/tokens`, { body: { participantName: 'A' } });
    await prisma.participant.update({ where: { id: body.participantId }, data: { connectedAt: new Date() } });
  }
  const endpointId = endpoint.id;
  lists = [
    { name: 'rooms', path: '/v1/rooms', params: {}, parameter: 'cursor', filter: ['status', 'created'] },
    {
      name: 'participants',
      path: `/v1/rooms/${room}/participants`,
      params: { roomId: room },
      parameter: 'cursor',
      filter: ['status', 'active'],
    },
    { name: 'webhooks', path: '/v1/webhooks', params: {}, parameter: 'cursor', filter: null },
    {
      name: 'deliveries',
      path: `${endpoint.path}/deliveries`,
      params: { endpointId },
      parameter: 'cursor',
      filter: ['status', 'pending'],
    },
    {
      name: 'attempts',
      path: `${made.path}/attempts`,
      params: { endpointId, deliveryId: made.id },
      parameter: 'cursor',
      filter: null,
    },
    { name: 'events', path: '/v1/events', params: {}, parameter: 'after', filter: ['type', 'webhook.test'] },
    { name: 'events', path: '/v1/events', params: {}, parameter: 'after', filter: ['roomId', room] },
  ];
});
const get = (path: string, query: Record<string, string>) =>
  api.call('GET', `${path}?${new URLSearchParams(query).toString()}`);
const base64 = (position: unknown) =>
  Buffer.from(typeof position === 'string' ? position : JSON.stringify(position)).toString('base64url');
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');

/** Forges cursors with a valid check. Any reader of the source code can do this. */
function forge(list: (typeof lists)[number], filters: Record<string, string>, position: unknown): string[] {
  const body = base64(position);
  const scope = JSON.stringify([
    list.name,
    api.tenant.environmentId,
    Object.entries(list.params).sort(([a], [b]) => (a < b ? -1 : 1)),
    Object.entries(filters),
  ]);
  return [`2.${body}.${sha256(`${scope}.${body}`).slice(0, 8)}`, body + sha256(`${list.name}:${body}`).slice(0, 6)];
}

const isRefused = async (list: (typeof lists)[number], query: Record<string, string>) => {
  const { status, body } = await get(list.path, query);
  expect([status, query, body.error?.details?.map((d: { path: string }) => d.path)]).toEqual([
    400,
    query,
    [`query.${list.parameter}`],
  ]);
};

describe('a cursor', () => {
  test('works in its own list with its own filters, and is rejected elsewhere', async () => {
    for (const list of lists) {
      const filters = list.filter === null ? {} : Object.fromEntries([list.filter]);
      for (const [own, others] of [
        [{}, filters],
        [filters, {}],
      ] as const) {
        const { nextCursor } = (await get(list.path, { ...own, limit: '1' })).body;
        if (nextCursor === null) continue;
        expect((await get(list.path, { ...own, [list.parameter]: nextCursor })).status).toBe(200);
        if (list.filter !== null) await isRefused(list, { ...others, [list.parameter]: nextCursor });
        for (const other of lists.filter(({ path }) => path !== list.path)) {
          await isRefused(other, { [other.parameter]: nextCursor });
        }
      }
    }
  });

  test.each([
    ...[
      '["\\u0000"]',
      'null',
      '[{}]',
      '[5]',
      '["evt_x","abc"]',
      '[]',
      '{}',
      '[null]',
      '',
      '[',
      '["room_x"]',
      '[["room_x"]]',
    ],
    ...['["evt_01m7xhkw0cfvqteeeq2c3fv3qk","99999999999999999999"]', '["evt_01m7xhkw0cfvqteeeq2c3fv3qk","-1"]'],
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
    for (const list of lists) {
      for (const forged of forge(list, {}, position)) await isRefused(list, { [list.parameter]: forged });
    }
  });

  test('with arbitrary content never causes a 500', async () => {
    const id = fc
      .constantFrom(...(['room', 'participant', 'webhookEndpoint', 'delivery', 'attempt', 'event'] as const))
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
      fc.asyncProperty(fc.nat({ max: 6 }), position, fc.boolean(), async (index, forgedPosition, isFiltered) => {
        const list = lists[index]!;
        const filters = isFiltered && list.filter !== null ? Object.fromEntries([list.filter]) : {};
        for (const cursor of forge(list, filters, forgedPosition)) {
          const { status } = await get(list.path, { ...filters, [list.parameter]: cursor });
          expect([200, 400]).toContain(status);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('with 5,000 characters is rejected', async () => {
    for (const list of lists) await isRefused(list, { [list.parameter]: forge(list, {}, ['x'.repeat(5000)])[0]! });
  });

  test('of the first version works in the list of events only', async () => {
    const [first, second] = (await get('/v1/events', { limit: '2' })).body.data;
    const row = await api.database.prisma.$queryRaw<[{ tx: string }]>`
      SELECT transaction_id::text AS tx FROM events WHERE id = ${first.id}`;
    const events = lists.find(({ name }) => name === 'events')!;
    const [, old] = forge(events, {}, [first.id, row[0].tx]);
    expect((await get('/v1/events', { after: old! })).body.data[0].id).toBe(second.id);
    const room = lists.at(-1)!.filter![1];
    const ofRoom = (await get('/v1/events', { roomId: room, limit: '1' })).body.data[0];
    const [, oldOfRoom] = forge(events, {}, [ofRoom.id, row[0].tx, room, String(ofRoom.sequence)]);
    expect((await get('/v1/events', { roomId: room, after: oldOfRoom! })).status).toBe(200);
    const rooms = lists[0]!;
    await isRefused(rooms, { cursor: forge(rooms, {}, [newId('room')])[1]! });
  });
});
