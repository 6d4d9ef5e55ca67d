import { newId } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import { insertTestEndpoint } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { newEvent, startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const overview = async (key: string) => (await api.call('GET', '/v1/overview', { key })).body;
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** Joins at these times: the events that the gateway writes. */
async function joins(tenant: TestTenant, ...times: Date[]): Promise<void> {
  const { body } = await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'A room' } });
  const { id } = body as { id: string };
  const events = times.map((createdAt) => newEvent('participant.joined', tenant, id, createdAt));
  await api.database.transaction((tx) => writeEvents(tx, events));
}

/** Lets participants be connected, each in the next one of the rooms whose ids begin so. */
async function connect({ environmentId }: TestTenant, roomPrefix: string, count: number): Promise<void> {
  const ids = newId('participant').slice('part_'.length, 20);
  const { sql } = api.database;
  await sql.$executeRaw`
    INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
    SELECT 'part_' || ${ids} || n, ${environmentId}, rooms.id, 'Ada', '{}', 'participant', now(), now()
    FROM generate_series(1, ${count}::int) n JOIN rooms ON rooms.id IN (${roomPrefix}, ${roomPrefix} || n)`;
  await sql.$executeRaw`
    INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at)
    SELECT 'sess_' || id, environment_id, room_id, id, now() FROM participants WHERE starts_with(id, 'part_' || ${ids})`;
}

test('the overview counts the live objects of the environment, by slots of five minutes', async () => {
  const [tenant, other] = [await api.newTenant(), await api.newTenant()];
  const failing = await insertTestEndpoint(api.database, tenant);
  await insertTestEndpoint(api.database, other);
  await joins(other, ago(1));
  await joins(tenant, ago(90), ago(57), ago(1), ago(1));
  await api.call('POST', '/v1/rooms', { key: tenant.key, body: { name: 'Another room' } });
  await insertTestEndpoint(api.database, tenant, { enabled: false });
  const failingSince = ago(30);
  const failures = { failingSince, lastFailedAt: ago(1) };
  await api.database.prisma.webhookEndpoint.update({ where: { id: failing }, data: failures });
  const { prisma } = api.database;
  // All participants of the other room have left. It stays active until somebody ends it.
  await prisma.room.updateMany({
    where: { environmentId: tenant.environmentId },
    data: { status: 'active', startedAt: ago(1) },
  });
  const room = await prisma.room.findFirstOrThrow({
    where: { environmentId: tenant.environmentId, name: 'A room' },
  });
  await connect(tenant, room.id, 2);
  const [newest, late, ...others] = await prisma.webhookDelivery.findMany({
    where: { endpointId: failing },
    orderBy: { createdAt: 'desc' },
  });
  const dueAt = ago(20);
  await prisma.webhookDelivery.update({ where: { id: late!.id }, data: { dueAt } });
  await prisma.webhookDelivery.update({
    where: { id: newest!.id },
    data: { status: 'succeeded', completedAt: new Date() },
  });
  // Two wait for a retry.
  const [waiting, again] = others;
  await prisma.webhookDelivery.update({ where: { id: waiting!.id }, data: { runAttempts: 1 } });
  await prisma.webhookDelivery.update({ where: { id: again!.id }, data: { runAttempts: 2 } });
  const { calls, webhooks } = await overview(tenant.key);
  expect(webhooks.failureRates).toEqual([{ endpointId: failing, tried: 3, failed: 2 }]);
  expect(calls).toMatchObject({
    activeRooms: { count: 1, capped: false },
    participants: { count: 2, capped: false },
    joins: { count: 3, capped: false },
  });
  expect(calls.joins.buckets.map(({ count }: { count: number }) => count)).toEqual([1, ...Array(10).fill(0), 2]);
  // The deliveries of one room with four joins, of which one is older, and of the other room.
  expect(others).toHaveLength(4);
  expect(webhooks).toMatchObject({
    deliveries: { pending: 4, delivering: 0, succeeded: 1, failed: 0, capped: false },
    oldestDueAt: dueAt.toISOString(),
    endpoints: { enabled: 1, disabled: 1 },
    failingEndpoints: [{ endpointId: failing, enabled: true, failingSince: failingSince.toISOString() }],
  });
  expect(webhooks.deliveries.buckets.at(-1)).toMatchObject({ succeeded: 1 });
});

test('an endpoint counts as failing after 15 minutes with more than one failed attempt, while it is enabled', async () => {
  const tenant = await api.newTenant();
  const { webhookEndpoint } = api.database.prisma;
  const withFailures = async (data: { failingSince: Date; lastFailedAt: Date; enabled?: boolean }) => {
    const id = await insertTestEndpoint(api.database, tenant);
    await webhookEndpoint.update({ where: { id }, data });
    return id;
  };
  await withFailures({ failingSince: ago(14), lastFailedAt: ago(1) });
  const once = ago(20);
  await withFailures({ failingSince: once, lastFailedAt: once });
  await withFailures({ failingSince: ago(20), lastFailedAt: ago(1), enabled: false });
  const failing = await withFailures({ failingSince: ago(16), lastFailedAt: ago(1) });
  const { webhooks } = await overview(tenant.key);
  expect(webhooks.failingEndpoints.map(({ endpointId }: { endpointId: string }) => endpointId)).toEqual([failing]);
});

test('a part without its scope is null, and a key without both is refused', async () => {
  const { environmentId } = api.tenant;
  const key = (scopes: ('rooms:read' | 'webhooks:read' | 'tokens:create')[]) => api.newKey(environmentId, { scopes });
  expect(await overview(await key(['rooms:read']))).toMatchObject({ calls: {}, webhooks: null });
  expect(await overview(await key(['webhooks:read']))).toMatchObject({
    calls: null,
    webhooks: { oldestDueAt: null, failingEndpoints: [] },
  });
  expect((await api.call('GET', '/v1/overview', { key: await key(['tokens:create']) })).status).toBe(403);
});

test('no figure counts more than 10,000 rows, and says that there are more', async () => {
  const tenant = await api.newTenant();
  const endpointId = await insertTestEndpoint(api.database, tenant);
  const { environmentId } = tenant;
  const roomPrefix = newId('room');
  await api.database.sql.$executeRaw`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, started_at)
    SELECT ${roomPrefix} || n, ${environmentId}, 'Room', '{}', 'active', 1, now(), now()
    FROM generate_series(1, 10001) n`;
  await connect(tenant, roomPrefix, 10_001);
  await joins(tenant, ago(1));
  await api.database.sql.$executeRaw`
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
    SELECT left(d.id, 20) || lpad(n::text, 10, '0'), d.environment_id, d.endpoint_id, d.event_id, d.event_type,
      'pending', now()
    FROM (SELECT * FROM webhook_deliveries WHERE endpoint_id = ${endpointId} LIMIT 1) d, generate_series(1, 10001) n`;
  const { calls, webhooks } = await overview(tenant.key);
  expect(calls.activeRooms).toEqual({ count: 10_000, capped: true });
  expect(calls.participants).toEqual({ count: 10_000, capped: true });
  expect(webhooks.deliveries).toMatchObject({ pending: 10_000, capped: true });
});
