import { describe, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS } from '@callplane/testing';
import { startTestApi } from '../api.testkit.js';

describe('rate limits', () => {
  test('apply per key and separately to reads and writes, with the headers of the IETF draft', async () => {
    // Low limits. On a slow machine a token returns while a few writes follow each other, so twelve are sent at once.
    const api = await startTestApi({
      limits: { reads: { perSecond: 1, burst: 10 }, writes: { perSecond: 1, burst: 3 } },
    });
    const write = (key = api.tenant.key) => api.call('POST', '/v1/rooms', { key, body: { name: 'A' } });
    const first = await write();
    expect(first.status).toBe(201);
    const answers = await Promise.all(Array.from({ length: 12 }, () => write()));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201).length).toBeGreaterThanOrEqual(2);
    expect(statuses).toContain(429);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.error.code).toBe('RATE_LIMITED');
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-policy': '"writes";q=3;w=3',
      ratelimit: expect.stringMatching(/^"writes";r=0;t=1$/),
    });
    expect(first.headers).toMatchObject({
      'ratelimit-policy': '"writes";q=3;w=3',
      ratelimit: expect.stringMatching(/^"writes";r=2;t=\d$/),
    });

    // The exhausted write limit affects neither reads nor other keys nor GET /v1/. The limit applies before routing.
    expect((await api.call('GET', '/v1/rooms')).status).toBe(200);
    expect((await write(await api.newKey(api.tenant.environmentId))).status).toBe(201);
    for (let n = 0; n < 15; n++) expect((await api.call('GET', '/v1/')).status).toBe(200);
    await eventually(async () => (await api.call('GET', '/v1/nowhere')).status === 429, { intervalMs: 0 });

    // A token returns after a while.
    await eventually(async () => (await write()).status === 201, { intervalMs: 100 });
  });

  test('are disabled by a rate of 0', async () => {
    const api = await startTestApi({
      limits: { reads: { perSecond: 0, burst: 1 }, writes: { perSecond: 0, burst: 1 } },
    });
    const response = await api.call('GET', '/v1/rooms');
    expect(response.headers).not.toHaveProperty('ratelimit');
  });

  test.each(REDIS_FAULTS)('apply per process while Redis is %s, and are shared again afterwards', async (fault) => {
    const api = await startTestApi({
      limits: { reads: { perSecond: 1, burst: 5 }, writes: { perSecond: 1, burst: 5 } },
    });
    await eventually(async () => (await api.call('GET', '/v1/rooms')).status === 429);
    const repair = await breakRedis(api.redis, fault);
    // The limit applies from the first request on, before the app has noticed the Redis fault.
    const startedAt = performance.now();
    const statuses = [];
    for (let n = 0; n < 25; n++) statuses.push((await api.call('GET', '/v1/rooms')).status);
    const seconds = (performance.now() - startedAt) / 1000;
    // The burst, the refill meanwhile, and two that Redis may have admitted.
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(5 + seconds + 2);
    expect(statuses).toContain(429);
    expect(statuses.every((status) => status === 200 || status === 429)).toBe(true);
    // Each request waits 200 ms until the probe notices the fault, which takes 1.2 s. The rest is for a slow machine.
    expect(seconds).toBeLessThan(15);
    await eventually(
      async () => {
        await api.call('GET', '/v1/rooms');
        return api.log().includes('rate limits local');
      },
      { intervalMs: 200 },
    );
    await repair();
    await eventually(
      async () => {
        await api.call('GET', '/v1/rooms');
        return api.log().includes('rate limits shared');
      },
      { intervalMs: 200 },
    );
  });
});
