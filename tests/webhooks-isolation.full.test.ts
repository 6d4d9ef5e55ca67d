/** The figures of isolation in real time: one worker, the contract's deadline, four receivers that hang. */
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { Database, writeEvents } from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestRedis,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  type TestTenant,
} from '@callplane/testing';

let database: Database;
let producer: JobProducer;
let tenant: TestTenant;
beforeAll(async () => {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  database = new Database({ url, poolMax: 5 });
  producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));
  tenant = await createTestTenant(database);
  await eventually(() => producer.redis.status === 'ready');
  await spawnApp({
    name: 'webhook-worker',
    env: {
      DATABASE_URL: url,
      REDIS_URL: redis.url,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    },
  });
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopAtEnd(() => Promise.resolve(server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** When each delivery arrived. */
async function startReceiver(): Promise<{ url: string; arrivals: Map<string, number> }> {
  const arrivals = new Map<string, number>();
  const server = createServer((request: IncomingMessage, response) => {
    arrivals.set(String(request.headers['x-service-delivery-id']), performance.now());
    response.end();
  });
  return { url: await listen(server), arrivals };
}

async function newEndpoint(url: string): Promise<string> {
  const id = newId('webhookEndpoint');
  const createdAt = new Date();
  const secretSealed = seal(parseMasterKeys([TEST_ENCRYPTION_KEYS]), 'whsec_test', `webhook-secret:${id}:1`);
  await database.prisma.webhookEndpoint.create({
    data: {
      id,
      environmentId: tenant.environmentId,
      url,
      events: ['*'],
      enabled: true,
      signingKeyVersion: 1,
      createdAt,
      updatedAt: createdAt,
      secrets: { create: { version: 1, secretSealed, createdAt } },
    },
  });
  return id;
}

async function emit(endpointId: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, () => ({ type: 'webhook.test' as const, data: {} }));
  const { deliveries } = await database.transaction((tx) =>
    writeEvents(tx, tenant, null, events, new Date(), { only: endpointId }),
  );
  await producer.wakeAll(deliveries.map((row) => ({ queue: 'webhook-delivery', row })));
  return deliveries.map(({ id }) => id);
}

test('four tar-pits of 50 pending deliveries: a proven endpoint within 2 s (p95), a new one within 15 s', async () => {
  const proven = await startReceiver();
  const provenId = await newEndpoint(proven.url);
  await emit(provenId, 1);
  await eventually(async () => (await database.prisma.webhookEndpoint.count({ where: { proven: true } })) === 1);

  const pitUrls = await Promise.all(
    Array.from({ length: 4 }, () => listen(createTcpServer((socket) => socket.on('error', () => undefined)))),
  );
  for (const url of pitUrls) await emit(await newEndpoint(url), 50);

  const lags: number[] = [];
  const newLags: number[] = [];
  const newOnes: { ids: string[]; at: number; arrivals: Map<string, number> }[] = [];
  const startedAt = performance.now();
  while (performance.now() - startedAt < 45_000) {
    if (newOnes.length * 5000 < performance.now() - startedAt && newOnes.length < 5) {
      const fresh = await startReceiver();
      const id = await newEndpoint(fresh.url);
      newOnes.push({ at: performance.now(), ids: await emit(id, 4), arrivals: fresh.arrivals });
    }
    const at = performance.now();
    const [id] = await emit(provenId, 1);
    const arrived = await eventually(() => proven.arrivals.get(id!), { intervalMs: 2, timeoutMs: 20_000 });
    lags.push(arrived - at);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  for (const { ids, at, arrivals } of newOnes) {
    for (const id of ids) newLags.push((await eventually(() => arrivals.get(id), { timeoutMs: 30_000 })) - at);
  }
  const p95 = (values: number[]) => values.sort((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1]!;
  const figures = `proven p95 ${Math.round(p95(lags))} ms of ${lags.length}, new p95 ${Math.round(p95(newLags))} ms of ${newLags.length}, slowest ${Math.round(Math.max(...newLags))} ms`;
  process.stdout.write(`${figures}\n`);
  expect(p95(lags)).toBeLessThan(2000);
  expect(p95(newLags)).toBeLessThan(15_000);
}, 120_000);
