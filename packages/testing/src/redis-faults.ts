import { eventually } from './eventually.js';
import { overRedis } from './test-redis.js';
import type { TestServer } from './test-servers.js';

/** The ways in which a Redis becomes unusable. */
export const REDIS_FAULTS = ['frozen', 'full', 'read-only', 'refused', 'unreachable'] as const;
export type RedisFault = (typeof REDIS_FAULTS)[number];

/** No server listens on this port, so a replica of it never finds its master. */
const CLOSED_PORT = 1;

/**
 * Breaks a Redis and resolves once the fault is in effect. The returned function repairs it; Redis keeps its data.
 *
 * - `frozen`: SIGSTOP; connections stay open and nothing answers.
 * - `full`: `maxmemory` is exceeded under `noeviction`; reads work, writes fail with `OOM`.
 * - `read-only`: `REPLICAOF` on the live server, as in a failover; reads work, writes fail with `READONLY`.
 * - `refused`: no user may run scripts, as with an ACL for another application; all other commands work.
 * - `unreachable`: SIGKILL; connections are reset and refused.
 */
export async function breakRedis(redis: TestServer, fault: RedisFault): Promise<() => Promise<void>> {
  switch (fault) {
    case 'frozen':
      redis.freeze();
      return () => {
        redis.thaw();
        return Promise.resolve();
      };
    case 'full':
      await sendToRedis(redis, [['CONFIG', 'SET', 'maxmemory', '1']]);
      return () => sendToRedis(redis, [['CONFIG', 'SET', 'maxmemory', '0']]);
    case 'read-only':
      await sendToRedis(redis, [['REPLICAOF', '127.0.0.1', String(CLOSED_PORT)]]);
      return () => sendToRedis(redis, [['REPLICAOF', 'NO', 'ONE']]);
    case 'refused':
      await setUsers(redis, '-eval', '-evalsha');
      return () => setUsers(redis, '+eval', '+evalsha');
    case 'unreachable':
      redis.kill('SIGKILL');
      await eventually(async () => !(await answers(redis)));
      return () => redis.start();
  }
}

/** Gives every user of a Redis further rules, such as `resetchannels`. */
export async function setUsers(redis: { url: string }, ...rules: readonly string[]): Promise<void> {
  await overRedis(redis.url, async (connection) => {
    for (const user of (await connection.call('ACL', 'USERS')) as string[]) {
      await connection.call('ACL', 'SETUSER', user, ...rules);
    }
  });
}

/** Sends administration commands over a separate connection. */
async function sendToRedis(redis: TestServer, commands: readonly (readonly [string, ...string[]])[]): Promise<void> {
  await overRedis(redis.url, async (connection) => {
    for (const [command, ...values] of commands) await connection.call(command, ...values);
  });
}

async function answers(redis: TestServer): Promise<boolean> {
  try {
    await overRedis(redis.url, (connection) => connection.ping());
    return true;
  } catch {
    return false;
  }
}
