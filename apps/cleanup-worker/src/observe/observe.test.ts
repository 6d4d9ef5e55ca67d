import { JobProducer } from '@callplane/queue';
import { createMetrics } from '@callplane/runtime';
import { breakRedis, eventually, PATIENT_REDIS, startTestRedis, stopAtEnd } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { startTestWorker, type TestWorker } from '../worker.testkit.js';
import { Observer, RedisObserver } from './observe.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});

test('the observer reports the oldest due row per queue and live counts, and nothing while the database is unavailable', async () => {
  const metrics = createMetrics({ app: 'cleanup-worker' });
  const deps = { ...worker.deps };
  const observer = new Observer(deps, metrics, 90);
  const valueOf = async (name: string): Promise<number | undefined> => {
    const line = (await metrics.text()).split('\n').find((each) => each.startsWith(name));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  await observer.pass();
  expect(await valueOf('callplane_oldest_due_seconds{queue="room-end"')).toBe(0);
  expect(await valueOf('callplane_live{what="participants"')).toBe(0);
  expect(await valueOf('callplane_due{queue="room-end"')).toBe(0);
  expect(await valueOf('callplane_dead_rows{table="webhook_deliveries"')).toBeGreaterThanOrEqual(0);
  expect(await valueOf('callplane_oldest_transaction_seconds{holder="session"')).toBeGreaterThanOrEqual(0);
  expect(await valueOf('callplane_oldest_transaction_seconds{holder="slot"')).toBeUndefined();
  expect(await valueOf('callplane_oldest_snapshot_transactions{holder="slot"')).toBe(0);
  expect(await valueOf('callplane_retention_lag_seconds{what="rooms"')).toBe(0);

  const operationId = await worker.newOperation();
  await worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '90 seconds' WHERE id = '${operationId}'`);
  await observer.pass();
  expect(await valueOf('callplane_oldest_due_seconds{queue="room-end"')).toBeGreaterThanOrEqual(90);
  expect(await valueOf('callplane_due{queue="room-end"')).toBe(1);
  expect(await valueOf('callplane_oldest_due_seconds{queue="participant-remove"')).toBe(0);
  expect(await valueOf('callplane_oldest_due_seconds{queue="webhook-delivery"')).toBe(0);

  let answer: (error: Error) => void = () => undefined;
  const $queryRaw = () => new Promise((_resolve, reject) => (answer = reject));
  deps.database = { sql: { $queryRaw } } as never;
  const pass = observer.pass();
  // The query is still running: a scrape meanwhile sees the last values.
  expect(await valueOf('callplane_oldest_due_seconds{queue="room-end"')).toBeGreaterThanOrEqual(90);
  expect(await valueOf('callplane_live{what="participants"')).toBe(0);
  answer(new Error('away'));
  await expect(pass).rejects.toThrow('away');
  expect(await valueOf('callplane_oldest_due_seconds')).toBeUndefined();
  expect(await valueOf('callplane_live')).toBeUndefined();
});

test('the observer reports role, memory and persistence of Redis, and nothing while it does not answer', async () => {
  const server = await startTestRedis();
  const quiet = { onLost: () => undefined, onReady: () => undefined };
  const producer = new JobProducer(server.url, quiet, PATIENT_REDIS);
  stopAtEnd(() => producer.close());
  const metrics = createMetrics({ app: 'cleanup-worker' });
  const observer = new RedisObserver(producer.redis, metrics);
  const valueOf = async (name: string): Promise<number | undefined> => {
    await observer.pass();
    const line = (await metrics.text()).split('\n').find((each) => each.startsWith(`callplane_redis_${name}{`));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  await eventually(async () => (await valueOf('master')) === 1);
  expect(await valueOf('replicas')).toBe(0);
  expect(await valueOf('persistence_ok')).toBe(1);
  expect(await valueOf('memory_used_bytes')).toBeGreaterThan(0);
  expect(await valueOf('memory_used_ratio')).toBe(0);

  const repair = await breakRedis(server, 'read-only');
  await eventually(async () => (await valueOf('master')) === 0);
  await repair();
  await eventually(async () => (await valueOf('master')) === 1);
  // The connection may still be replaced after the last answer of a read-only server.
  await eventually(async () => (await producer.redis.config('SET', 'maxmemory', '100mb')) === 'OK');
  expect(await valueOf('memory_used_ratio')).toBeGreaterThan(0);
  server.kill('SIGKILL');
  await eventually(async () => (await valueOf('master')) === undefined);
});
