import { beforeAll, describe, expect, test } from '@jest/globals';
import { CONCURRENCY_PER_WORKER } from '@callplane/core';
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

/** Twice the duration of a stop, and below the 25 s of the drain deadline. */
const STOP_WITHIN_MS = 15_000;

describe('SIGTERM to the cleanup worker', () => {
  test('finishes the running operations, gives the job that waits for a slot back, and exits with code 0', async () => {
    const app = await spawnWorker();
    const { database, producer } = kit.deps;
    const inSession = { connectedAt: before(30), inSession: true };
    const rooms = await Promise.all(Array.from({ length: CONCURRENCY_PER_WORKER }, () => kit.newRoom()));
    for (const roomId of rooms) await kit.newParticipant(roomId, inSession);
    let ends: Awaited<ReturnType<typeof kit.endRoom>>[] = [];
    const isHeld = async (id: string) => (await kit.row(id)).leaseToken !== null;
    const other = await kit.newRoom();
    const left: string[] = [];
    await database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ANY(${rooms}) FOR UPDATE`;
      // Not before the lock: a scan of the worker finds them at once.
      ends = await Promise.all(rooms.map((roomId) => kit.endRoom(roomId)));
      await producer.wakeOperations(ends.map(({ wake }) => wake!));
      for (const { operation } of ends) await eventually(() => isHeld(operation.id));
      const removal = await kit.removeParticipant(other, await kit.newParticipant(other, inSession));
      await producer.wakeOperations([removal.wake!]);
      await eventually(async () => (await producer.redis.llen('callplane:participant-remove:active')) === 1);
      app.kill('SIGTERM');
      await app.waitForLog(({ message }) => message === 'process drains');
      const late = await kit.endRoom(await kit.newRoom());
      await producer.wakeOperations([late.wake!]);
      left.push(removal.operation.id, late.operation.id);
    });
    expect(await app.exited).toEqual({ code: 0, signal: null });
    for (const { operation } of ends) {
      expect(await kit.row(operation.id)).toMatchObject({ status: 'completed', attempts: 1 });
    }
    for (const id of left) expect(await kit.row(id)).toMatchObject({ status: 'pending', attempts: 0 });
    // Another worker finds it there at once.
    expect(await producer.redis.zcard('callplane:participant-remove:delayed')).toBe(1);
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
