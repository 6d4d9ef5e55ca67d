import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, overRedis, startTestRedis, stopAtEnd, type TestServer } from '@callplane/testing';
import { RedisHealth } from './redis-health.js';
import { connectRedis, disconnectRedis } from './redis.js';

const quiet = { onLost: () => undefined, onReady: () => undefined };

function watch(url: string): RedisHealth {
  // A busy machine may need longer than requests can wait for.
  const redis = connectRedis(url, 'command', quiet, { commandTimeout: 10_000 });
  const health = new RedisHealth(redis);
  stopAtEnd(() => {
    health.close();
    return disconnectRedis(redis);
  });
  return health;
}

describe('a Redis that accepts writes is in trouble', () => {
  let server: TestServer;
  let health: RedisHealth;
  const setUser = (...rules: string[]) =>
    overRedis(server.url, (redis) => redis.call('ACL', 'SETUSER', 'probed', ...rules));
  beforeAll(async () => {
    server = await startTestRedis();
    await setUser('on', '>secret', '~*', '&*', '+@all');
    health = watch(server.url.replace(/\/\/.*@/, '//probed:secret@'));
  });

  test.each([
    ['EVAL', '-eval'],
    ['EVALSHA', '-evalsha'],
    ['blocking commands', '-@blocking'],
    ['streams', '-@stream'],
    ['the commands of a script', '-zadd'],
    ['the keys of a queue', 'resetkeys', '~callplane:health', '~callplane:probe:*', '~callplane:webhook*'],
    ['the keys of the probe', 'resetkeys', '~callplane:health', '~callplane:room-end:*'],
  ])('if it refuses %s', async (_, ...rules) => {
    await eventually(() => health.trouble === null);
    await setUser(...rules);
    await health.probeAll();
    await expect(health.check()).rejects.toMatchObject({ reason: 'refused' });
    await setUser('~*', '+@all');
    await eventually(() => health.trouble === null);
  });

  test('which a timer finds, too', async () => {
    await eventually(() => health.trouble === null);
    await setUser('-eval');
    await eventually(() => health.trouble === 'refused');
  });
});

test('a cluster is in trouble', async () => {
  const server = await startTestRedis({ isCluster: true });
  await overRedis(server.url, (redis) => redis.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383'));
  const health = watch(server.url);
  await eventually(() => health.trouble === 'cluster');
});

test('the job of the probe leaves a bounded number of keys, also of processes that die during it', async () => {
  const server = await startTestRedis();
  const healths = [watch(server.url), watch(server.url)];
  await eventually(() => healths.every(({ trouble }) => trouble === null));
  await overRedis(server.url, async (redis) => {
    // As a process leaves it that dies with a job.
    await redis.lpush('callplane:probe:active', 'probe-1');
    await redis.hset('callplane:probe:probe-1', { name: 'probe', data: '{}', opts: '{}', timestamp: '0' });
    for (let n = 0; n < 40; n += 1) await Promise.all(healths.map((health) => health.probeAll()));
    expect(healths.map(({ trouble }) => trouble)).toEqual([null, null]);
    expect((await redis.keys('callplane:probe:*')).length).toBeLessThan(25);
  });
});
