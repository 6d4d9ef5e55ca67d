import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS, startTestRedis, stopAtEnd } from '@callplane/testing';
import { RedisHealth, troubleOf } from './redis-health.js';
import { connectRedis, disconnectRedis, type RedisRole } from './redis.js';

const quiet = { onLost: () => undefined, onReady: () => undefined };

function connect(url: string, role: RedisRole = 'command') {
  const redis = connectRedis(url, role, quiet);
  const health = new RedisHealth(redis);
  stopAtEnd(() => {
    health.close();
    return disconnectRedis(redis);
  });
  return { redis, health };
}

describe('the health of Redis', () => {
  test('reports why a write fails, and recovers by itself', async () => {
    const server = await startTestRedis();
    const { health } = connect(server.url);
    for (const fault of REDIS_FAULTS) {
      await eventually(() => health.trouble === null);
      const repair = await breakRedis(server, fault);
      try {
        await eventually(() => health.trouble === fault);
        await expect(health.check()).rejects.toThrow(/Redis is/);
      } finally {
        await repair();
      }
    }
    await eventually(() => health.trouble === null);
    await health.check();
  });

  test.each([
    ['OOM command not allowed when used memory > maxmemory', 'full'],
    ["READONLY You can't write against a read only replica.", 'read-only'],
    ['MASTERDOWN Link with MASTER is down', 'read-only'],
    ['LOADING Redis is loading the dataset in memory', 'loading'],
    ['MISCONF Errors writing to the AOF file: No space left on device', 'not-persisting'],
    ['WRONGPASS invalid username-password pair', 'refused'],
    ['NOAUTH Authentication required.', 'refused'],
    ['Command timed out', 'frozen'],
    ['connect ECONNREFUSED 127.0.0.1:1', 'unreachable'],
  ])('maps the error "%s" to %s', (message, trouble) => {
    expect(troubleOf(new Error(message))).toBe(trouble);
  });
});

describe('a connection to Redis', () => {
  test('repeats a refused command of a worker once the server is the master', async () => {
    const server = await startTestRedis();
    const { redis } = connect(server.url, 'blocking');
    const repair = await breakRedis(server, 'read-only');
    const set = redis.set('key', 'value');
    let settled = false;
    void set.finally(() => (settled = true));
    // Waits for two refusals; the pause between two attempts is a second.
    await new Promise((resolve) => redis.once('reconnecting', resolve));
    await new Promise((resolve) => redis.once('reconnecting', resolve));
    expect(settled).toBe(false);
    await repair();
    expect(await set).toBe('OK');
  });

  test('is replaced if the server accepts it and never answers', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    stopAtEnd(
      () =>
        new Promise((resolve) => {
          for (const socket of sockets) socket.destroy();
          silent.close(resolve);
        }),
    );
    const { port } = silent.address() as { port: number };
    const { health } = connect(`redis://127.0.0.1:${port}`);
    await eventually(() => health.trouble === 'frozen');
    await eventually(() => sockets.length >= 2);
  });
});
