import { beforeAll, describe, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS, spawnApp, type TestApp } from '@callplane/testing';
import { before, startTestWorker, type TestWorker } from './worker.testkit.js';

let kit: TestWorker;
beforeAll(async () => {
  kit = await startTestWorker();
});

const spawnWorker = (env: Record<string, string> = {}): Promise<TestApp> =>
  spawnApp({
    name: 'cleanup-worker',
    env: { DATABASE_URL: kit.databaseUrl, REDIS_URL: kit.redis.url, SWEEP_INTERVAL_MS: '200', ...env },
  });
const health = async (app: TestApp, path: string) => {
  const response = await fetch(`${app.healthUrl}${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

test('the cleanup worker reports all configuration errors at once and exits with code 1', async () => {
  const app = await spawnApp({
    name: 'cleanup-worker',
    untilReady: false,
    env: {
      DATABASE_URL: 'postgresql://root:hunter2@db:nine/x',
      LEASE_MS: '1e3',
      SWEEP_INTERVAL_MS: '60000',
      LOG_LEVEL: 'loud',
    },
  });
  expect(await app.exited).toEqual({ code: 1, signal: null });
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'LEASE_MS', 'SWEEP_INTERVAL_MS', 'LOG_LEVEL'])
    expect(app.output()).toContain(`- ${name} `);
  expect(app.output()).not.toContain('hunter2');
});

test.each(REDIS_FAULTS)(
  'the cleanup worker stays alive and ready while Redis is %s, and reports the problem',
  async (fault) => {
    const app = await spawnWorker();
    await eventually(async () => (await health(app, '/readyz')).body['status'] === 'ok');
    const repair = await breakRedis(kit.redis, fault);
    try {
      await eventually(async () => {
        expect(await health(app, '/readyz')).toEqual({
          status: 200,
          body: { status: 'degraded', checks: { postgres: 'ok', redis: fault } },
        });
        return true;
      });
      expect(await health(app, '/livez')).toMatchObject({ status: 200 });
      const metrics = await (await fetch(app.metricsUrl)).text();
      expect(metrics).toContain(`callplane_redis_unusable{reason="${fault}",app="cleanup-worker"} 1`);
    } finally {
      await repair();
    }
    await eventually(async () => (await health(app, '/readyz')).body['status'] === 'ok');
    expect(await (await fetch(app.metricsUrl)).text()).not.toMatch(/callplane_redis_unusable\{.*\} 1/);
    expect(await app.stop()).toEqual({ code: 0, signal: null });
  },
);

/** Twice what a stop takes, and below the 25 s of the drain deadline. */
const STOP_WITHIN_MS = 15_000;

describe('SIGTERM to the cleanup worker', () => {
  test('finishes the running operation, claims no other, and exits with code 0', async () => {
    const app = await spawnWorker();
    const roomId = await kit.newRoom();
    await kit.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const { operation, wake } = await kit.endRoom(roomId);
    const { database, producer } = kit.deps;
    let next = '';
    await database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ${roomId} FOR UPDATE`;
      await producer.wakeOperations([wake!]);
      await eventually(async () => (await kit.row(operation.id)).leaseToken !== null);
      app.kill('SIGTERM');
      await app.waitForLog(({ message }) => message === 'process drains');
      // From here on the worker is not ready, but stays alive until it has drained.
      const late = await kit.endRoom(await kit.newRoom());
      next = late.operation.id;
      await eventually(async () => {
        const { leaseToken } = await kit.row(operation.id);
        return leaseToken !== null;
      });
    });
    expect(await app.exited).toEqual({ code: 0, signal: null });
    expect(await kit.row(operation.id)).toMatchObject({ status: 'completed', attempts: 1 });
    expect(await kit.row(next)).toMatchObject({ status: 'pending', attempts: 0 });
  });

  test.each(REDIS_FAULTS)('stops the worker in time while Redis is %s', async (fault) => {
    const app = await spawnWorker();
    const repair = await breakRedis(kit.redis, fault);
    try {
      const startedAt = performance.now();
      app.kill('SIGTERM');
      expect(await app.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - startedAt).toBeLessThan(STOP_WITHIN_MS);
    } finally {
      await repair();
    }
  });
});
