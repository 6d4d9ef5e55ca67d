import { describe, expect, test } from '@jest/globals';
import { OverloadedError } from '@callplane/runtime';
import { CallerCache, type StoredKey } from './authenticate.js';

const key: StoredKey = {
  projectId: 'proj_1',
  environmentId: 'env_1',
  keyId: 'key_1',
  keyType: 'secret',
  scopes: [],
  expiresAt: null,
  revokedAt: null,
};
const hash = '01'.repeat(32);

function setUp(stored: () => Promise<StoredKey | null>) {
  const time = { ms: 0, now: new Date('2026-01-01T00:00:00Z') };
  let queries = 0;
  const cache = new CallerCache(
    async (ids) => {
      queries++;
      const found = await stored();
      return new Map(found === null ? [] : ids.map((id) => [id, found]));
    },
    { now: () => time.now },
    () => time.ms,
  );
  return { cache, time, queries: () => queries };
}

describe('the caller cache', () => {
  test('shares one query among concurrent requests, and queries again after four seconds', async () => {
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

  test('rejects a revoked key at once after a notice, and within five seconds without one', async () => {
    let stored: StoredKey = key;
    const { cache, time } = setUp(() => Promise.resolve(stored));
    expect(await cache.find(hash)).toBe(key);
    stored = { ...key, revokedAt: new Date() };
    cache.forget(hash);
    expect(await cache.find(hash)).toBeNull();

    stored = key;
    time.ms += 5000;
    expect(await cache.find(hash)).toBe(key);
    stored = { ...key, revokedAt: new Date() };
    time.ms += 5000;
    expect(await cache.find(hash)).toBeNull();
  });

  test('does not cache the result of a query that was running when the key was revoked', async () => {
    const answers: ((stored: StoredKey) => void)[] = [];
    const { cache } = setUp(() => new Promise((resolve) => answers.push(resolve)));
    const early = cache.find(hash);
    cache.forget(hash);
    answers[0]!(key);
    await early;
    const late = cache.find(hash);
    answers[1]!({ ...key, revokedAt: new Date() });
    expect(await late).toBeNull();
  });

  test('rejects a cached key from its expiry on', async () => {
    const { cache, time } = setUp(() => Promise.resolve({ ...key, expiresAt: new Date('2026-01-01T00:00:01Z') }));
    expect(await cache.find(hash)).not.toBeNull();
    time.now = new Date('2026-01-01T00:00:01Z');
    expect(await cache.find(hash)).toBeNull();
  });

  test('does not look up an unknown key again for one second, and accepts it afterwards', async () => {
    let stored: StoredKey | null = null;
    const { cache, time, queries } = setUp(() => Promise.resolve(stored));
    for (let n = 0; n < 20; n++) expect(await cache.find(hash)).toBeNull();
    expect([queries(), cache.hasSeen(hash)]).toEqual([1, false]);
    stored = key;
    time.ms = 1001;
    expect(await cache.find(hash)).toBe(key);
    expect(cache.hasSeen(hash)).toBe(true);
  });

  test('keeps an existing key cached while 12,000 unknown keys are looked up', async () => {
    let stored: StoredKey | null = key;
    const { cache, queries } = setUp(() => Promise.resolve(stored));
    await cache.find(hash);
    stored = null;
    const unknown = Array.from({ length: 12_000 }, (_, n) => `unknown ${n}`);
    for (const one of unknown) await cache.find(one);
    expect(queries()).toBe(12_001);
    expect(await cache.find(hash)).toBe(key);
    expect(queries()).toBe(12_001);
  });

  test('limits the size of a batch, and rejects further look-ups without treating their keys as unknown', async () => {
    const { cache, queries } = setUp(() => Promise.resolve(key));
    const hashes = Array.from({ length: 510 }, (_, n) => `key ${n}`);
    const settled = await Promise.allSettled(hashes.map((one) => cache.find(one, { inBatch: true })));
    const refused = settled.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(10);
    expect(refused[0]).toMatchObject({ reason: expect.any(OverloadedError) });
    expect(await cache.find(hashes[509]!)).toBe(key);
    expect(queries()).toBe(2);
  });
});
