import { JobProducer } from '@callplane/queue';
import { createMetrics } from '@callplane/runtime';
import { breakRedis, eventually, PATIENT_REDIS, startTestRedis, stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { RedisObserver } from './observe.js';

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
