import { firstIdAt } from '@callplane/core';
import { beforeAll, expect, test } from '@jest/globals';
import { listRooms } from './rooms/rooms.repository.js';
import { startTestRooms, type TestRooms } from './sessions/sessions.testkit.js';
import { listDeliveries, type DeliveryListFilter } from './webhooks/delivery-lists.js';

/** Lists and their filters over many rows, of which few match. */

const DELIVERIES = 6000;
const ENDPOINTS = 3;
const NO_FILTER: DeliveryListFilter = {
  endpointId: null,
  roomId: null,
  status: null,
  eventType: null,
  failureReason: null,
  since: null,
  until: null,
};
const START = new Date('2026-11-01T00:00:00.000Z');
/** One delivery a minute. */
const at = (n: number) => new Date(START.getTime() + n * 60_000);

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
  const { environmentId } = rooms.tenant;
  await rooms.sql(`
    INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at)
    SELECT 'whep_' || n, '${environmentId}', 'https://example.com/', '{*}', true, 1, now(), now()
    FROM generate_series(0, ${ENDPOINTS - 1}) n`);
  // Every 1000th event is rare, and only those deliveries have failed.
  await rooms.sql(`
    INSERT INTO events (id, environment_id, type, body, created_at)
    SELECT 'evt_' || lpad(n::text, 26, '0'), '${environmentId}',
      CASE WHEN n % 1000 = 0 THEN 'operation.failed' ELSE 'webhook.test' END, '{}', now()
    FROM generate_series(0, ${DELIVERIES - 1}) n`);
  const ids = JSON.stringify(Array.from({ length: DELIVERIES }, (_, n) => firstIdAt('delivery', at(n))));
  await rooms.sql(`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, failure_reason,
      created_at, completed_at)
    SELECT id, '${environmentId}', 'whep_' || (n - 1) % ${ENDPOINTS}, 'evt_' || lpad((n - 1)::text, 26, '0'),
      CASE WHEN (n - 1) % 1000 = 0 THEN 'operation.failed' ELSE 'webhook.test' END,
      CASE WHEN (n - 1) % 1000 = 0 THEN 'failed' ELSE 'succeeded' END,
      CASE WHEN (n - 1) % 1000 = 0 THEN 'rejected' END,
      timestamptz '${START.toISOString()}' + (n - 1) * interval '1 minute', now()
    FROM jsonb_array_elements_text('${ids}') WITH ORDINALITY AS made (id, n)`);
  await rooms.sql(`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
    SELECT 'room_n' || lpad(n::text, 6, '0'), '${environmentId}', 'Room ' || n % 1000, '{}', 'created', 10, now()
    FROM generate_series(1, 5000) n`);
});

const idsOf = (...numbers: number[]) => numbers.map((n) => firstIdAt('delivery', at(n)));
const list = async (filter: Partial<DeliveryListFilter>, limit = 4, beforeId: string | null = null) =>
  (await listDeliveries(rooms.database.sql, rooms.tenant, { ...NO_FILTER, ...filter }, { beforeId, limit })).map(
    ({ id }) => id,
  );

test('deliveries of all endpoints are one list, newest first', async () => {
  expect(await list({})).toEqual(idsOf(5999, 5998, 5997, 5996));
  expect(await list({}, 2, idsOf(5997)[0])).toEqual(idsOf(5996, 5995));
  expect(await list({ endpointId: 'whep_1' }, 2)).toEqual(idsOf(5998, 5995));
  expect(await list({ endpointId: 'whep_9' })).toEqual([]);
  const stranger = { ...rooms.tenant, environmentId: 'env_x' };
  for (const filter of [NO_FILTER, { ...NO_FILTER, endpointId: 'whep_1' }]) {
    expect(await listDeliveries(rooms.database.sql, stranger, filter, { beforeId: null, limit: 4 })).toEqual([]);
  }
});

test('deliveries are filtered by status, type, reason and time, with both ends included', async () => {
  expect(await list({ status: 'failed' })).toEqual(idsOf(5000, 4000, 3000, 2000));
  expect(await list({ eventType: 'operation.failed' }, 10, idsOf(4000)[0])).toEqual(idsOf(3000, 2000, 1000, 0));
  expect(await list({ status: 'failed', eventType: 'webhook.test' })).toEqual([]);
  expect(await list({ failureReason: 'rejected' }, 2, idsOf(4000)[0])).toEqual(idsOf(3000, 2000));
  expect(await list({ failureReason: 'rejected', eventType: 'operation.failed', status: 'failed' }, 1)).toEqual(
    idsOf(5000),
  );
  expect(await list({ failureReason: 'rejected', since: at(900), until: at(1100) })).toEqual(idsOf(1000));
  expect(await list({ failureReason: 'run_expired' })).toEqual([]);
  expect(await list({ failureReason: 'rejected', status: 'succeeded' })).toEqual([]);
  expect(await list({ since: at(10), until: at(12) })).toEqual(idsOf(12, 11, 10));
  const ofOne = { endpointId: 'whep_1', since: at(10), until: at(5998) };
  expect(await list(ofOne, 2)).toEqual(idsOf(5998, 5995));
  expect(await list(ofOne, 4, idsOf(19)[0])).toEqual(idsOf(16, 13, 10));
  expect(await list({ since: at(900), until: at(2100), status: 'failed' })).toEqual(idsOf(2000, 1000));
  expect(await list({ since: at(5999) })).toEqual(idsOf(5999));
  expect(await list({ until: new Date(0) })).toEqual([]);
});

test('deliveries of one room are in the order of its events, with the same filters', async () => {
  const { environmentId } = rooms.tenant;
  const [roomId, other] = [await rooms.newRoom(), await rooms.newRoom()];
  for (const [room, prefix] of [
    [roomId, 'r'],
    [other, 's'],
  ]) {
    await rooms.sql(`
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
      SELECT 'evt_${prefix}' || n, '${environmentId}', 'room.updated', '${room}', 100 + n, '{}', now()
      FROM generate_series(1, 5) n`);
    await rooms.sql(`
      INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
        created_at, completed_at)
      SELECT 'dlv_${prefix}' || n || 'e' || e, '${environmentId}', 'whep_' || e, 'evt_${prefix}' || n, 'room.updated', '${room}',
        100 + n, CASE n WHEN 2 THEN 'succeeded' ELSE 'pending' END, now(), CASE n WHEN 2 THEN now() END
      FROM generate_series(1, 5) n, generate_series(0, 1) e`);
  }
  expect(await list({ roomId }, 3)).toEqual(['dlv_r5e1', 'dlv_r5e0', 'dlv_r4e1']);
  expect(await list({ roomId }, 2, 'dlv_r4e1')).toEqual(['dlv_r4e0', 'dlv_r3e1']);
  expect(await list({ roomId, endpointId: 'whep_0', status: 'pending' }, 4)).toEqual(
    [5, 4, 3, 1].map((n) => `dlv_r${n}e0`),
  );
  expect(await list({ roomId, eventType: 'room.ended' })).toEqual([]);
  expect(await list({ roomId: 'room_unknown' })).toEqual([]);
  await rooms.sql(`DELETE FROM webhook_deliveries WHERE room_id IS NOT NULL`);
  await rooms.sql(`DELETE FROM events WHERE room_id IS NOT NULL AND sequence > 100`);
});

test('a delivery whose id is a minute younger than its event is found by the time of the event', async () => {
  const [id] = idsOf(7000);
  await rooms.sql(`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
    SELECT '${id}', environment_id, endpoint_id, event_id, event_type, 'pending',
      timestamptz '${at(7000).toISOString()}' - interval '59 seconds'
    FROM webhook_deliveries LIMIT 1`);
  expect(await list({ until: at(7000), status: 'pending' })).toEqual([id]);
  expect(await list({ until: new Date(at(7000).getTime() - 59_000), status: 'pending' })).toEqual([id]);
});

test('rooms whose names begin with a text are one list by name, over all statuses and pages', async () => {
  await rooms.sql(`UPDATE rooms SET status = 'active', started_at = now() WHERE id = 'room_n002008'`);
  const seen: string[] = [];
  const page = { status: null, name: null, namePrefix: 'Room 8', limit: 100 };
  for (let beforeId: string | null = null; ;) {
    const found = await listRooms(rooms.database.sql, rooms.tenant, { ...page, beforeId });
    seen.push(...found.map(({ name, id }) => `${name} ${id}`));
    if (found.length < page.limit) break;
    beforeId = found.at(-1)!.id;
  }
  const all = await rooms.database.prisma.room.findMany({
    where: { environmentId: rooms.tenant.environmentId, name: { startsWith: 'Room 8' } },
  });
  expect(all.length).toBeGreaterThan(page.limit);
  expect(seen).toEqual(all.map(({ name, id }) => `${name} ${id}`).sort());
  const active = await listRooms(rooms.database.sql, rooms.tenant, { ...page, status: 'active', beforeId: null });
  expect(active.map(({ id }) => id)).toEqual(['room_n002008']);
  const exact = (name: string) => listRooms(rooms.database.sql, rooms.tenant, { ...page, name, beforeId: null });
  expect([...new Set((await exact('Room 87')).map(({ name }) => name))]).toEqual(['Room 87']);
  expect(await exact('Room 7')).toEqual([]);
});

test('rooms of one name are one list over all statuses', async () => {
  await rooms.sql(`UPDATE rooms SET status = 'active', started_at = now() WHERE id = 'room_n003007'`);
  const named = async (status: 'active' | null, beforeId: string | null = null) =>
    (await listRooms(rooms.database.sql, rooms.tenant, { status, name: 'Room 7', beforeId, limit: 3 })).map(
      ({ id }) => id,
    );
  expect(await named(null)).toEqual(['room_n004007', 'room_n003007', 'room_n002007']);
  expect(await named(null, 'room_n002007')).toEqual(['room_n001007', 'room_n000007']);
  expect(await named('active')).toEqual(['room_n003007']);
});
