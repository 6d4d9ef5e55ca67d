import { beforeAll, describe, expect, test } from '@jest/globals';
import { QUEUE_OF_OPERATION } from '@callplane/queue';
import { eventually, spawnApp, type TestApp } from '@callplane/testing';
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

const freeze = () => {
  kit.redis.freeze();
  return Promise.resolve();
};
const thaw = () => {
  kit.redis.thaw();
  return Promise.resolve();
};

test('a wrong configuration is told all at once, and the worker exits with 1', async () => {
  const app = await spawnApp({
    name: 'cleanup-worker',
    untilReady: false,
    env: { DATABASE_URL: 'mysql://root:hunter2@db', LEASE_MS: '1e3', SWEEP_INTERVAL_MS: '60000', LOG_LEVEL: 'loud' },
  });
  expect(await app.exited).toEqual({ code: 1, signal: null });
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'LEASE_MS', 'SWEEP_INTERVAL_MS', 'LOG_LEVEL'])
    expect(app.output()).toContain(`- ${name} `);
  expect(app.output()).not.toContain('hunter2');
});

test('it is alive while Redis is away, and ready only while Redis answers', async () => {
  const app = await spawnWorker();
  expect(await health(app, '/livez')).toMatchObject({ status: 200 });
  expect(await health(app, '/readyz')).toMatchObject({
    status: 200,
    body: { checks: { postgres: 'ok', redis: 'ok' } },
  });
  kit.redis.freeze();
  try {
    expect(await health(app, '/livez')).toMatchObject({ status: 200 });
    expect(await health(app, '/readyz')).toMatchObject({
      status: 503,
      body: { checks: { postgres: 'ok', redis: 'unavailable' } },
    });
  } finally {
    kit.redis.thaw();
  }
  await eventually(async () => (await health(app, '/readyz')).status === 200);
  expect(await app.stop()).toEqual({ code: 0, signal: null });
});

describe('SIGTERM', () => {
  test('lets the operation under way finish, takes no other, and exits with 0', async () => {
    const app = await spawnWorker();
    const roomId = await kit.newRoom();
    await kit.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const { operation, wake } = await kit.endRoom(roomId);
    const { database, producer } = kit.deps;
    let next = '';
    await database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ${roomId} FOR UPDATE`;
      await producer.wake({ queue: QUEUE_OF_OPERATION['room.end'], row: wake! });
      await eventually(async () => (await kit.row(operation.id)).leaseToken !== null);
      app.kill('SIGTERM');
      await app.waitForLog(({ message }) => message === 'process drains');
      // Not ready from here on, and alive until it ends.
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

  test.each([
    ['frozen', freeze, thaw],
    ['gone', () => kit.redis.stop(), () => kit.redis.start()],
  ] as const)('ends it in time while Redis is %s', async (_state, away, back) => {
    const app = await spawnWorker();
    await away();
    try {
      const startedAt = performance.now();
      app.kill('SIGTERM');
      expect(await app.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - startedAt).toBeLessThan(5000);
    } finally {
      await back();
    }
  });
});
