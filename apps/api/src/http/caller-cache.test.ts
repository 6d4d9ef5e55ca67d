import { describe, expect, test } from '@jest/globals';
import { CallerCache, type StoredKey } from './caller-cache.js';

const key: StoredKey = {
  projectId: 'proj_1',
  environmentId: 'env_1',
  keyId: 'key_1',
  keyType: 'secret',
  scopes: [],
  expiresAt: null,
  revokedAt: null,
};
const hash = Buffer.alloc(32, 1);

function setUp(stored: () => Promise<StoredKey | null>) {
  const time = { ms: 0, now: new Date('2026-01-01T00:00:00Z') };
  let queries = 0;
  const cache = new CallerCache(
    () => {
      queries++;
      return stored();
    },
    { now: () => time.now },
    () => time.ms,
  );
  return { cache, time, queries: () => queries };
}

describe('caller cache', () => {
  test('asks once for many requests, and again when the answer is four seconds old', async () => {
    const { cache, time, queries } = setUp(() => Promise.resolve(key));
    await Promise.all(Array.from({ length: 50 }, () => cache.find(hash)));
    expect(queries()).toBe(1);
    time.ms = 4000;
    expect(await cache.find(hash)).toBe(key);
    expect(queries()).toBe(1);
    time.ms = 4001;
    await cache.find(hash);
    expect(queries()).toBe(2);
  });

  test('a revoked key is refused at once on notice, and within five seconds without', async () => {
    let stored: StoredKey = key;
    const { cache, time } = setUp(() => Promise.resolve(stored));
    expect(await cache.find(hash)).toBe(key);
    stored = { ...key, revokedAt: new Date() };
    cache.forget(hash.toString('hex'));
    expect(await cache.find(hash)).toBeNull();

    stored = key;
    time.ms += 5000;
    expect(await cache.find(hash)).toBe(key);
    stored = { ...key, revokedAt: new Date() };
    time.ms += 5000;
    expect(await cache.find(hash)).toBeNull();
  });

  test('an answer that was under way when the key was revoked is not kept', async () => {
    const answers: ((stored: StoredKey) => void)[] = [];
    const { cache } = setUp(() => new Promise((resolve) => answers.push(resolve)));
    const early = cache.find(hash);
    cache.forget(hash.toString('hex'));
    answers[0]!(key);
    await early;
    const late = cache.find(hash);
    answers[1]!({ ...key, revokedAt: new Date() });
    expect(await late).toBeNull();
  });

  test('a key is refused from its expiry on, cached or not', async () => {
    const { cache, time } = setUp(() => Promise.resolve({ ...key, expiresAt: new Date('2026-01-01T00:00:01Z') }));
    expect(await cache.find(hash)).not.toBeNull();
    time.now = new Date('2026-01-01T00:00:01Z');
    expect(await cache.find(hash)).toBeNull();
  });

  test('a database that fails fails the request and leaves nothing behind', async () => {
    let fail = true;
    const { cache } = setUp(() => (fail ? Promise.reject(new Error('down')) : Promise.resolve(key)));
    await expect(cache.find(hash)).rejects.toThrow('down');
    fail = false;
    expect(await cache.find(hash)).toBe(key);
  });
});
