import { beforeAll, describe, expect, test } from '@jest/globals';
import type { EventType, NewEvent } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';
import { newEventExample } from '../openapi/answer-examples.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** Reads all pages as a poller does. Retries, because open transactions of other tests may delay the last events. */
async function poll(tenant: TestTenant, count: number, query = ''): Promise<string[]> {
  return eventually(async () => {
    const seen: string[] = [];
    for (let after: string | null = ''; after !== null;) {
      const page = await api.call('GET', `/v1/events?limit=2${query}${after === '' ? '' : `&after=${after}`}`, {
        key: tenant.key,
      });
      expect(page.status).toBe(200);
      seen.push(...page.body.data.map(({ id }: { id: string }) => id));
      after = page.body.nextCursor;
    }
    return seen.length >= count ? seen : null;
  });
}
/** An event with the example data of the OpenAPI document: `call` checks every answer against that document. */
const newEvent = (type: EventType, tenant: TestTenant, roomId: string | null = null): NewEvent => ({
  ...newEventExample(type),
  tenant,
  roomId,
  createdAt: new Date(),
});

const write = (tenant: TestTenant, roomId: string | null, count = 1) =>
  api.database.transaction((tx) =>
    writeEvents(
      tx,
      Array.from({ length: count }, () => newEvent(roomId === null ? 'webhook.test' : 'room.started', tenant, roomId)),
    ),
  );

describe('GET /v1/events', () => {
  test('lists event bodies as webhooks send them, and continues after the last event', async () => {
    const tenant = await api.newTenant();
    expect((await api.call('GET', '/v1/events', { key: tenant.key })).body).toEqual({ data: [], nextCursor: null });
    const written: string[] = [];
    for (let n = 0; n < 5; n++) written.push(...(await write(tenant, null)).eventIds);
    expect(await poll(tenant, 5)).toEqual(written);
    const all = (await api.call('GET', '/v1/events', { key: tenant.key })).body;
    const stored = await api.database.prisma.event.findUniqueOrThrow({ where: { id: written[0]! } });
    expect(all.data[0]).toEqual(JSON.parse(stored.body));
    const nothing = (await api.call('GET', `/v1/events?after=${all.nextCursor}`, { key: tenant.key })).body;
    expect(nothing).toEqual({ data: [], nextCursor: null });
    const [later] = (await write(tenant, null)).eventIds;
    await eventually(async () => {
      const { data } = (await api.call('GET', `/v1/events?after=${all.nextCursor}`, { key: tenant.key })).body;
      return data.length === 1 && data[0].id === later;
    });
    const afterId = (await api.call('GET', `/v1/events?after=${written[3]}`, { key: tenant.key })).body;
    expect(afterId.data.map(({ id }: { id: string }) => id)).toEqual([written[4], later]);
  });

  test('never skips an event that commits late', async () => {
    const tenant = await api.newTenant();
    const { database } = api;
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    let lateId = '';
    const late = database.transaction(async (tx) => {
      [lateId = ''] = (await writeEvents(tx, [newEvent('webhook.test', tenant)])).eventIds;
      await held;
    });
    await eventually(() => lateId !== '');
    const [early = ''] = (await write(tenant, null)).eventIds;
    const during = (await api.call('GET', '/v1/events', { key: tenant.key })).body;
    release();
    await late;
    // If the early event were listed already, its cursor would skip the late event.
    expect(during).toEqual({ data: [], nextCursor: null });
    expect(await poll(tenant, 2)).toEqual([lateId, early]);
  });

  test('lists the events of a room by sequence and without gaps while another transaction is open', async () => {
    const tenant = await api.newTenant();
    const { body: room } = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'r' } });
    const other = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'r' } });
    await Promise.all([write(tenant, room.id, 3), write(tenant, room.id, 2), write(tenant, other.body.id)]);
    let release = () => {};
    const open = api.database.transaction(async (tx) => {
      await writeEvents(tx, [newEvent('webhook.test', tenant)]);
      await new Promise<void>((resolve) => (release = resolve));
    });
    const ids = await poll(tenant, 6, `&roomId=${room.id}`);
    release();
    await open;
    const all = (await api.call('GET', `/v1/events?roomId=${room.id}`, { key: tenant.key })).body;
    expect(all.data.map(({ sequence }: { sequence: number }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(all.data.map(({ id }: { id: string }) => id)).toEqual(ids);
    const started = await poll(tenant, 5, `&roomId=${room.id}&type=room.started`);
    expect(started).toEqual(ids.slice(1));
    const gap = (await api.call('GET', `/v1/events?roomId=${room.id}&after=${ids[2]}`, { key: tenant.key })).body;
    expect(gap.data.map(({ sequence }: { sequence: number }) => sequence)).toEqual([4, 5, 6]);
    expect((await poll(tenant, 1, '&type=webhook.test')).length).toBe(1);
  });

  test.each([
    ['limit=0', 'query.limit'],
    ['type=room.exploded', 'query.type'],
    ['roomId=a.b', 'query.roomId'],
    ['after=', 'query.after'],
    ['after=mangled', 'query.after'],
    ['after=evt_00000000000000000000000000', 'query.after'],
    ['after=%00', 'query.after'],
    ['environmentId=env_x', 'query.environmentId'],
  ])('rejects ?%s', async (query, path) => {
    const response = await api.call('GET', `/v1/events?${query}`);
    expect(response.status).toBe(400);
    expect(response.body.error.details.map((d: { path: string }) => d.path)).toEqual([path]);
  });

  test('rejects a cursor of another room, and answers 404 for an unknown room', async () => {
    const [first, second] = [await api.room(), await api.room()];
    const { nextCursor } = (await api.call('GET', `/v1/events?roomId=${first}`)).body;
    expect((await api.call('GET', `/v1/events?roomId=${second}&after=${nextCursor}`)).status).toBe(400);
    const unknown = await api.call('GET', '/v1/events?roomId=room_0');
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    const nothingNew = await api.call('GET', `/v1/events?roomId=${first}&after=${nextCursor}`);
    expect(nothingNew.body).toEqual({ data: [], nextCursor: null });
  });
});
