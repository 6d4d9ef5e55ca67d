import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId, roomCreated, type RoomState, type WebhookFilter } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import { NOON, startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { matchesFilter, tryFilter } from './event-filter.js';
import { writeEvents } from './write-events.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});

const DATA = { room: { name: 'support-7', metadata: { team: 'core', tags: ['a', 7], on: true, none: null, n: 7 } } };

async function matches(filter: WebhookFilter): Promise<boolean> {
  const [row] = await rooms.database.sql.$queryRaw<[{ matches: boolean }]>`
    SELECT ${matchesFilter(Prisma.sql`filter`, Prisma.sql`data`)} AS matches
    FROM (SELECT ${JSON.stringify(filter)}::jsonb AS filter, ${JSON.stringify(DATA)}::jsonb AS data) given`;
  return row.matches;
}

describe('a filter', () => {
  test.each([
    { 'room.metadata.team': ['core'] },
    { 'room.metadata.team': ['support', 'core'], 'room.name': [{ prefix: 'support-' }] },
    { 'room.metadata.tags': ['a'] },
    { 'room.metadata.tags': [7] },
    { 'room.metadata.tags.1': [7] },
    { 'room.metadata.on': [true] },
    { 'room.metadata.none': [null] },
    { 'room.metadata.n': [7] },
  ])('matches: %j', async (filter) => expect(await matches(filter as WebhookFilter)).toBe(true));

  test.each([
    { 'room.metadata.team': ['Core'] },
    { 'room.metadata.team': ['core'], 'room.name': ['support-'] },
    { 'room.metadata.team': [{ prefix: 'ore' }] },
    { 'room.metadata.tags': [{ prefix: 'a' }] },
    { 'room.metadata.n': ['7'] },
    { 'room.metadata.n': [{ prefix: '7' }] },
    { 'room.metadata': ['core'] },
    { 'room.metadata.missing': [null] },
    { 'room.name.length': [9] },
    { participant: [null] },
  ])('does not match: %j', async (filter) => expect(await matches(filter as WebhookFilter)).toBe(false));
});

describe('an event', () => {
  test('makes deliveries only for endpoints whose filter matches, and trying one on it says the same', async () => {
    const { database, tenant } = rooms;
    const add = async (filter: WebhookFilter | null, events = ['*']) => {
      const id = newId('webhookEndpoint');
      const at = { createdAt: NOON, updatedAt: NOON };
      const endpoint = { id, environmentId: tenant.environmentId, url: 'https://example.com', events, enabled: true };
      await database.prisma.webhookEndpoint.create({
        data: { ...endpoint, ...at, signingKeyVersion: 1, ...(filter === null ? {} : { filter }) },
      });
      return id;
    };
    const roomId = await rooms.newRoom();
    const room = await database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
    const [all, same, other] = [
      await add(null),
      await add({ 'room.id': [roomId], 'room.name': [{ prefix: room.name.slice(0, 2) }] }),
      await add({ 'room.id': ['room_other'] }),
    ];
    await add({ 'room.id': [roomId] }, ['room.ended']);
    const event = roomCreated(tenant, room as unknown as RoomState);
    const { eventIds, deliveries } = await database.transaction((tx) => writeEvents(tx, [event]));
    expect(deliveries.map(({ endpointId }) => endpointId).sort()).toEqual([all, same].sort());
    const only = await database.transaction((tx) => writeEvents(tx, [event], { only: other }));
    expect(only.deliveries).toHaveLength(1);

    const tried = (filter: WebhookFilter | null) => tryFilter(database.sql, tenant, eventIds[0]!, filter);
    expect(await tried(null)).toEqual({ eventType: 'room.created', matches: true, paths: [] });
    expect(await tried({ 'room.id': ['x', roomId], 'a.b': [1] })).toEqual({
      eventType: 'room.created',
      matches: false,
      paths: [
        { path: 'a.b', value: null, matches: false },
        { path: 'room.id', value: roomId, matches: true },
      ],
    });
    expect(await tryFilter(database.sql, { ...tenant, environmentId: 'env_other' }, eventIds[0]!, null)).toBeNull();
  });
});
