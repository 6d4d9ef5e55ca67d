import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, spawnApp, type TestApp } from '@callplane/testing';
import { startReceiver, startTarPit } from './receivers.testkit.js';
import { startTestWorker, type TestWorker } from './worker.testkit.js';

let kit: TestWorker;
beforeAll(async () => {
  kit = await startTestWorker();
});

const spawnWorker = (env: Record<string, string> = {}): Promise<TestApp> =>
  spawnApp({
    name: 'webhook-worker',
    env: {
      DATABASE_URL: kit.databaseUrl,
      REDIS_URL: kit.redis.url,
      SWEEP_INTERVAL_MS: '200',
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
      ...env,
    },
  });
const wake = async (endpointId: string, count = 1) => {
  const rows = await kit.emit(endpointId, count);
  await kit.deps.producer.wakeDeliveries(rows);
  return rows.map(({ id }) => id);
};

describe('the webhook worker process', () => {
  test('sends the deliveries of a killed worker within 30 s, and only the ones in flight twice', async () => {
    let hangs = true;
    const receiver = await startReceiver((_request, response) => {
      if (!hangs) response.end();
    });
    // The leases have the 120 s of the contract.
    const app = await spawnWorker();
    const ids = await wake(await kit.newEndpoint(receiver.url, { slotMs: 200 }), 10);
    await eventually(() => receiver.requests.length === 4);
    const held = receiver.requests.map(({ headers }) => String(headers['x-service-delivery-id']));
    // On a machine that starves Redis, a worker sends without it. The tokens of such leases are random.
    const tokens = (await Promise.all(held.map((id) => kit.row(id)))).map(({ leaseToken }) => leaseToken);
    const isOfRedis = tokens.every((token) => /00[0-9a-f]{2}$/.test(token ?? ''));
    app.kill('SIGKILL');
    await app.exited;
    const killedAt = performance.now();
    hangs = false;
    const successor = await spawnWorker();
    await eventually(async () => (await Promise.all(ids.map((id) => kit.row(id)))).every((row) => row.completedAt), {
      timeoutMs: 180_000,
    });
    const lastAt = Math.max(...receiver.requests.map(({ at }) => at));
    const attempts = (await Promise.all(ids.map((id) => kit.attempts(id)))).flat();
    expect(
      attempts
        .filter(({ errorCode }) => errorCode === 'LEASE_EXPIRED')
        .map(({ deliveryId }) => deliveryId)
        .sort(),
    ).toEqual([...held].sort());
    expect(receiver.requests).toHaveLength(14);
    // The rest of the 30 s and of the lease is for a slow machine.
    expect(lastAt - killedAt).toBeLessThan(isOfRedis ? 45_000 : 150_000);
    expect(await successor.stop()).toEqual({ code: 0, signal: null });
  });

  test('finishes running attempts after SIGTERM and starts no other', async () => {
    const pit = await startTarPit();
    const app = await spawnWorker({ DELIVERY_DEADLINE_MS: '5000' });
    await wake(await kit.newEndpoint(pit.url, { slotMs: 200 }), 12);
    await eventually(() => pit.requests.length === 4);
    app.kill('SIGTERM');
    expect(await app.exited).toEqual({ code: 0, signal: null });
    expect(pit.requests).toHaveLength(4);
    expect(await kit.deps.database.prisma.webhookDelivery.count({ where: { status: 'delivering' } })).toBe(0);
    expect(await kit.deps.database.prisma.webhookAttempt.count({ where: { errorCode: 'RESPONSE_TIMEOUT' } })).toBe(4);
  });

  test('has more slots with more workers', async () => {
    // Deliveries of the tests before would hold slots.
    kit = await startTestWorker();
    const pit = await startTarPit();
    const app = await spawnWorker({ WORKERS_PER_PROCESS: '3', DELIVERY_DEADLINE_MS: '60000' });
    for (let endpoints = 0; endpoints < 6; endpoints += 1)
      await wake(await kit.newEndpoint(pit.url, { slotMs: 2000 }), 2);
    // The endpoints are known as slow: they share three slots of each worker.
    await eventually(() => pit.requests.length === 9);
    app.kill('SIGKILL');
    await app.exited;
  });
});
