import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { breakRedis, REDIS_FAULTS } from './redis-faults.js';
import { startTestRedis } from './test-redis.js';

const REFUSALS = { frozen: 'Command timed out', full: 'OOM', 'read-only': 'READONLY', unreachable: 'ECONNREFUSED' };
/** Long enough for a busy machine. */
const PATIENT_MS = 30_000;
/** For a server that never answers. */
const HASTY_MS = 500;

test.each(REDIS_FAULTS)(
  'a write fails while Redis is %s, and succeeds with the old data after the repair',
  async (fault) => {
    const server = await startTestRedis();
    const set = async (key: string, timeoutMs = PATIENT_MS): Promise<string | null> => {
      const timeouts = { commandTimeout: timeoutMs, connectTimeout: timeoutMs };
      const redis = new Redis(server.url, { lazyConnect: true, retryStrategy: null, ...timeouts });
      let lost: Error | undefined;
      redis.on('error', (error: Error) => (lost = error));
      try {
        await redis.connect();
        await redis.set(key, 'value');
        return await redis.get('before');
      } catch (error) {
        return (lost ?? (error as Error)).message;
      } finally {
        redis.disconnect();
      }
    };
    expect(await set('before')).toBe('value');
    const repair = await breakRedis(server, fault);
    const refusal = await set('meanwhile', fault === 'frozen' ? HASTY_MS : PATIENT_MS);
    // A frozen Redis accepts the connection but never answers the client's first commands.
    expect(refusal).toMatch(fault === 'frozen' ? /timed out|ETIMEDOUT/i : new RegExp(REFUSALS[fault]));
    await repair();
    expect(await set('after')).toBe('value');
  },
);
