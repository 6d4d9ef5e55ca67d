import { describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startTestApi } from '../api.testkit.js';

describe('rate limits', () => {
  test('a token bucket per key and kind, with the headers of the IETF draft', async () => {
    // One token in ten seconds, so that none comes back while the test runs.
    const api = await startTestApi({
      limits: { reads: { perSecond: 1, burst: 10 }, writes: { perSecond: 1, burst: 3 } },
    });
    const write = (key = api.tenant.key) => api.call('POST', '/v1/rooms', { key, body: { name: 'A' } });
    const answers = [];
    for (let n = 0; n < 5; n++) answers.push(await write());
    const statuses = answers.map(({ status }) => status);
    expect(statuses.slice(0, 3)).toEqual([201, 201, 201]);
    expect(statuses).toContain(429);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.error.code).toBe('RATE_LIMITED');
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-policy': '"writes";q=3;w=3',
      ratelimit: expect.stringMatching(/^"writes";r=0;t=1$/),
    });
    expect(answers[0]!.headers).toMatchObject({
      'ratelimit-policy': '"writes";q=3;w=3',
      ratelimit: expect.stringMatching(/^"writes";r=2;t=\d$/),
    });

    // Reads, other keys and GET /v1/ are not touched by it; the limit stands before the route.
    expect((await api.call('GET', '/v1/rooms')).status).toBe(200);
    expect((await write(await api.newKey(api.tenant.environmentId))).status).toBe(201);
    for (let n = 0; n < 15; n++) expect((await api.call('GET', '/v1/')).status).toBe(200);
    const before404 = [];
    for (let n = 0; n < 12; n++) before404.push((await api.call('GET', '/v1/nowhere')).status);
    expect(before404.at(-1)).toBe(429);

    // A token comes back with time.
    await eventually(async () => (await write()).status === 201, { timeoutMs: 5000, intervalMs: 100 });
  });

  test('a rate of 0 is no limit', async () => {
    const api = await startTestApi({
      limits: { reads: { perSecond: 0, burst: 1 }, writes: { perSecond: 0, burst: 1 } },
    });
    const response = await api.call('GET', '/v1/rooms');
    expect(response.headers).not.toHaveProperty('ratelimit');
  });

  test('Redis away or frozen means no limit, not no service', async () => {
    const api = await startTestApi({
      limits: { reads: { perSecond: 1, burst: 1 }, writes: { perSecond: 1, burst: 1 } },
    });
    api.redis.freeze();
    const startedAt = performance.now();
    for (let n = 0; n < 5; n++) expect((await api.call('GET', '/v1/rooms')).status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(1000);
    api.redis.thaw();
    await api.redis.stop();
    for (let n = 0; n < 5; n++) expect((await api.call('GET', '/v1/rooms')).status).toBe(200);
    expect(api.log()).toContain('rate limit unavailable');
  });
});
