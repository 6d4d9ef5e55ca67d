import { beforeAll, describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, EVENT_WAITS_PER_ENVIRONMENT_MAX } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { eventually } from '@callplane/testing';
import formats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { newEvent, startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';

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
const write = (tenant: TestTenant, roomId: string | null, count = 1) =>
  api.database.transaction((tx) =>
    writeEvents(
      tx,
      Array.from({ length: count }, () => newEvent(roomId === null ? 'webhook.test' : 'room.started', tenant, roomId)),
    ),
  );

describe('GET /v1/event-types', () => {
  test('describes every type with a schema that its example and real bodies match, and a guess does not', async () => {
    const room = await api.room();
    const real = await eventually(async () => {
      const { data } = (await api.call('GET', `/v1/events?roomId=${room}`)).body;
      return data.length > 0 && data;
    });
    const { status, body } = await api.call('GET', '/v1/event-types');
    expect([status, body.data.map(({ type }: { type: string }) => type)]).toEqual([200, EVENT_TYPES]);
    for (const { type, description, schema, example } of body.data) {
      const ajv = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true });
      formats.default(ajv);
      const matches = ajv.compile(schema);
      expect([type, description.length > 10, matches(example), matches.errors]).toEqual([type, true, true, null]);
      expect(matches({ ...example, type: 'x' })).toBe(false);
      expect(matches({ ...example, added: 1, data: { ...example.data, added: 1 } })).toBe(true);
      for (const event of real.filter((each: { type: string }) => each.type === type))
        expect(matches(event)).toBe(true);
    }
  });
});

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
      [lateId = ''] = (await writeEvents(tx, [newEvent('webhook.test', tenant, null)])).eventIds;
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
    const released = new Promise<void>((resolve) => (release = resolve));
    const open = api.database.transaction(async (tx) => {
      await writeEvents(tx, [newEvent('webhook.test', tenant, null)]);
      await released;
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

  test('answers 404 for an unknown room, and an empty page after the last event', async () => {
    const first = await api.room();
    const { nextCursor } = (await api.call('GET', `/v1/events?roomId=${first}`)).body;
    const unknown = await api.call('GET', '/v1/events?roomId=room_0');
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    const nothingNew = await api.call('GET', `/v1/events?roomId=${first}&after=${nextCursor}`);
    expect(nothingNew.body).toEqual({ data: [], nextCursor: null });
  });
});

describe('GET /v1/events with wait', () => {
  /** The number of requests that wait. */
  const waits = async () => Number(/^callplane_event_waits\S* (\d+)$/m.exec(await api.metrics())![1]);
  /** Begins a request that waits, and resolves once it does. */
  async function waiting(tenant: TestTenant, query: string, key = tenant.key) {
    const before = await waits();
    const response = api.call('GET', `/v1/events?wait=30${query}`, { key });
    // Without this, a failed assertion would leave a rejection unhandled.
    response.catch(() => undefined);
    await eventually(async () => (await waits()) === before + 1);
    return { response };
  }
  const ids = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id);

  test('answers as soon as an event is committed, of the environment or of the room', async () => {
    const tenant = await api.newTenant();
    const { body: room } = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'r' } });
    const first = (await poll(tenant, 1))[0]!;
    const environment = await waiting(tenant, `&after=${first}`);
    const [written] = (await write(tenant, null)).eventIds;
    expect(ids(await environment.response)).toEqual([written]);
    const ofRoom = await waiting(tenant, `&roomId=${room.id}&after=${first}`);
    const [started] = (await write(tenant, room.id)).eventIds;
    expect(ids(await ofRoom.response)).toEqual([started]);
    expect(await waits()).toBe(0);
  });

  test('passes over events of other types, and answers empty when the time is over', async () => {
    const tenant = await api.newTenant();
    const { body: room } = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'r' } });
    const request = await waiting(tenant, '&type=webhook.test');
    await write(tenant, room.id, 3);
    const [wanted] = (await write(tenant, null)).eventIds;
    expect(ids(await request.response)).toEqual([wanted]);
    const late = await api.call('GET', '/v1/events?type=room.ended&wait=1', { key: tenant.key });
    expect([late.status, late.body]).toEqual([200, { data: [], nextCursor: null }]);
    expect(await api.logAfter(late)).toMatch(/"waitedMs":\d+/);
  });

  test('begins after the newest event with after=latest, and gives a cursor in any case', async () => {
    const tenant = await api.newTenant();
    const latest = async (query = '') =>
      (await api.call('GET', `/v1/events?after=latest${query}`, { key: tenant.key })).body;
    const empty = await latest();
    expect(empty).toEqual({ data: [], nextCursor: expect.any(String) });
    const { body: room } = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'r' } });
    const created = (await api.call('GET', `/v1/events?wait=30&after=${empty.nextCursor}`, { key: tenant.key })).body;
    expect(created.data.map(({ type }: { type: string }) => type)).toEqual(['room.created']);
    for (const query of ['', `&roomId=${room.id}`]) {
      const { data, nextCursor } = await latest(query);
      expect(data).toEqual([]);
      const [next] = (await write(tenant, room.id)).eventIds;
      const page = await api.call('GET', `/v1/events?wait=30&after=${nextCursor}${query}`, { key: tenant.key });
      expect(ids(page)).toEqual([next]);
    }
    const unknown = await api.call('GET', '/v1/events?after=latest&roomId=room_0', { key: tenant.key });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
  });

  test('begins with the first event that was created since a time', async () => {
    const tenant = await api.newTenant();
    const at = (minute: number) => new Date(Date.UTC(2031, 0, 1, 12, minute));
    const written: string[] = [];
    for (const minute of [0, 5, 10]) {
      const event = newEvent('webhook.test', tenant, null, at(minute));
      written.push(...(await api.database.transaction((tx) => writeEvents(tx, [event]))).eventIds);
    }
    await poll(tenant, 3);
    const since = async (minute: number, query = '') =>
      api.call('GET', `/v1/events?since=${at(minute).toISOString()}${query}`, { key: tenant.key });
    expect(ids(await since(0))).toEqual(written);
    expect(ids(await since(1))).toEqual(written.slice(1));
    expect(ids(await since(11))).toEqual([]);
    const { body } = await since(1, '&limit=1');
    // A cursor continues without the time that the list began with.
    expect(ids(await api.call('GET', `/v1/events?after=${body.nextCursor}`, { key: tenant.key }))).toEqual([
      written[2],
    ]);
  });

  test('refuses a further request with 429, and gives its place back when the caller closes the connection', async () => {
    const tenant = await api.newTenant();
    const abort = new AbortController();
    const url = `${api.url}/v1/events?wait=30`;
    const headers = { authorization: `Bearer ${tenant.key}` };
    const held = Array.from({ length: EVENT_WAITS_PER_ENVIRONMENT_MAX }, () =>
      fetch(url, { headers, signal: abort.signal }).catch(() => null),
    );
    await eventually(async () => (await waits()) === held.length);
    const refused = await api.call('GET', '/v1/events?wait=30', { key: tenant.key });
    expect([refused.status, refused.body.error.code, refused.headers['retry-after']]).toEqual([
      429,
      'RATE_LIMITED',
      '1',
    ]);
    const other = await api.newTenant();
    await write(other, null);
    // Another environment has places of its own, and a request that finds events needs none.
    expect((await api.call('GET', '/v1/events?wait=30', { key: other.key })).body.data).toHaveLength(1);
    abort.abort();
    expect(new Set(await Promise.all(held))).toEqual(new Set([null]));
    await eventually(async () => (await waits()) === 0);
  });

  test('does not answer with events to a key that was revoked meanwhile', async () => {
    const tenant = await api.newTenant();
    const request = await waiting(tenant, '');
    const { keyHash } = await api.database.prisma.apiKey.update({
      where: { id: tenant.keyId },
      data: { revokedAt: new Date() },
    });
    await publishNotice(api.redis, 'apiKeyRevoked', Buffer.from(keyHash).toString('hex'));
    await write(tenant, null);
    const response = await request.response;
    expect([response.status, response.body.error.code]).toEqual([401, 'UNAUTHENTICATED']);
  });

  test.each([
    ['wait=31', 'query.wait'],
    ['wait=-1', 'query.wait'],
    ['wait=1.5', 'query.wait'],
    ['since=yesterday', 'query.since'],
    ['since=1969-12-31T23:59:59Z', 'query.since'],
  ])('rejects ?%s', async (query, path) => {
    const response = await api.call('GET', `/v1/events?${query}`);
    expect(response.status).toBe(400);
    expect(new Set(response.body.error.details.map((d: { path: string }) => d.path))).toEqual(new Set([path]));
  });
});

describe('GET /v1/events/{eventId}', () => {
  test('answers with the body that deliveries send', async () => {
    const tenant = await api.newTenant();
    const [id = ''] = (await write(tenant, null)).eventIds;
    const stored = await api.database.prisma.event.findUniqueOrThrow({ where: { id } });
    const response = await api.call('GET', `/v1/events/${id}`, { key: tenant.key });
    expect([response.status, response.text]).toEqual([200, stored.body]);
    const unknown = await api.call('GET', '/v1/events/evt_0', { key: tenant.key });
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'EVENT_NOT_FOUND']);
  });
});
