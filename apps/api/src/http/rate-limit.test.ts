import { randomBytes } from 'node:crypto';
import { formatApiKey, formatConsoleSecret, formatLoginCode } from '@callplane/core';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS, startTestRedis, type TestServer } from '@callplane/testing';
import { startTestApi, type TestApi, type TestTenant } from '../api.testkit.js';

let api: TestApi;
let redis: TestServer;
beforeAll(async () => {
  redis = await startTestRedis();
  // Low limits. On a slow machine a token returns while a few writes follow each other, so twelve are sent at once.
  api = await startTestApi({
    REDIS_URL: redis.url,
    RATE_LIMIT_READS_PER_SECOND: '1',
    RATE_LIMIT_READS_BURST: '10',
    RATE_LIMIT_WRITES_PER_SECOND: '1',
    RATE_LIMIT_WRITES_BURST: '3',
    // So few that the bucket does not refill during a test.
    RATE_LIMIT_UNKNOWN_KEYS_PER_MINUTE: '1',
    RATE_LIMIT_UNKNOWN_KEYS_BURST: '5',
  });
});

describe('rate limits', () => {
  test('apply per key and separately to reads and writes, with the headers of the IETF draft', async () => {
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

    // Answers of the limit have the documented headers, also for a repeated write and for unknown routes.
    // On a slow machine a token returns in between, which the next request takes.
    const isRefused = (send: () => ReturnType<TestApi['call']>) =>
      eventually(async () => (await send()).status === 429, { intervalMs: 0 });
    await isRefused(() => api.call('PATCH', '/v1/rooms'));
    const headers = { 'idempotency-key': 'once' };
    await isRefused(() => api.call('POST', '/v1/rooms', { body: { name: 'A' }, headers }));

    // The exhausted write limit affects neither reads nor other keys nor GET /v1/. The limit applies before routing.
    expect((await api.call('GET', '/v1/rooms')).status).toBe(200);
    expect((await write(await api.newKey(api.tenant.environmentId))).status).toBe(201);
    for (let n = 0; n < 15; n++) expect((await api.call('GET', '/v1/')).status).toBe(200);
    await eventually(async () => (await api.call('GET', '/v1/nowhere')).status === 429, { intervalMs: 0 });

    // A token returns after a while.
    await eventually(async () => (await write()).status === 201, { intervalMs: 100 });
  });

  test.each([
    ['1e300', '0'],
    ['inf', ''],
    ['nan', 'nan'],
    ['-inf', '1e300'],
    ['3', '1e15'],
    ['3', 'inf'],
    ['x', 'y'],
  ])('refuse a key for one refill at most, also if somebody writes used=%s and at=%s into Redis', async (used, at) => {
    const key = await api.newKey(api.tenant.environmentId);
    const write = async () => (await api.call('POST', '/v1/rooms', { key, body: { name: 'A' } })).status;
    await write();
    const newest = (await api.redis.keys('callplane:rate:writes:*')).sort().at(-1)!;
    await api.redis.hset(newest, { used, ...(at === '' ? {} : { at }) });
    await eventually(async () => (await write()) === 201, { intervalMs: 100 });
  });

  test('are disabled by a rate of 0', async () => {
    const unlimited = await startTestApi();
    const response = await unlimited.call('GET', '/v1/rooms');
    expect(response.headers).not.toHaveProperty('ratelimit');
  });

  test.each(REDIS_FAULTS)('apply per process while Redis is %s, and are shared again afterwards', async (fault) => {
    const { key } = await api.newTenant();
    const read = async () => (await api.call('GET', '/v1/rooms', { key })).status;
    await eventually(async () => (await read()) === 429);
    const before = api.log().length;
    const repair = await breakRedis(redis, fault);
    // The limit applies from the first request on, before the app has noticed the Redis fault.
    const startedAt = performance.now();
    const statuses = [];
    for (let n = 0; n < 25; n++) statuses.push(await read());
    const seconds = (performance.now() - startedAt) / 1000;
    // The burst, the refill meanwhile, and two that Redis may have admitted.
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(10 + seconds + 2);
    expect(statuses).toContain(429);
    expect(statuses.every((status) => status === 200 || status === 429)).toBe(true);
    // Each request waits 200 ms until the probe notices the fault, which takes 1.2 s. The rest is for a slow machine.
    expect(seconds).toBeLessThan(15);
    await eventually(
      async () => {
        await read();
        return api.log().slice(before).includes('rate limits local');
      },
      { intervalMs: 200 },
    );
    await repair();
    await eventually(
      async () => {
        await read();
        return api.log().slice(before).includes('rate limits shared');
      },
      { intervalMs: 200 },
    );
  });
});

describe('the limit of unknown keys', () => {
  const unknownKey = () => formatApiKey('secret', randomBytes(32));
  let tenant: TestTenant;
  /** The client's address, another one for each test. */
  let address: string;
  let tests = 0;
  beforeEach(async () => {
    tests += 1;
    address = `192.0.2.${tests}`;
    tenant = await api.newTenant();
  });
  const call = (method: string, path: string, key: string | null, headers: Record<string, string> = {}) =>
    api.call(method, path, { key, headers: { 'x-forwarded-for': address, ...headers } });
  const statusOf = async (key: string | null, headers: Record<string, string> = {}, path = '/v1/rooms') =>
    (await call('GET', path, key, headers)).status;

  test('limits unknown keys per address with 429, and still accepts valid keys from that address', async () => {
    const failures = async (reason: string) => {
      const counter = `callplane_http_authentication_failures_total{reason="${reason}",app="api"} `;
      return Number((await api.metrics()).split(counter)[1]?.split('\n')[0] ?? 0);
    };
    const all = () => Promise.all(['invalid_key', 'too_many', 'no_key'].map(failures));
    const before = await all();
    for (let n = 0; n < 5; n++) expect(await statusOf(unknownKey())).toBe(401);
    const refused = await call('GET', '/v1/rooms', unknownKey());
    expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    // A key from before the flood of unknown keys, and a key that is created after it.
    expect(await statusOf(tenant.key)).toBe(200);
    expect(await statusOf(await api.newKey(tenant.environmentId))).toBe(200);
    // These are not unknown keys: a key with a wrong checksum, a missing key, and a revoked key.
    expect(await statusOf('rtc_sk_typo')).toBe(401);
    expect(await statusOf(null)).toBe(401);
    expect(await statusOf(await api.newKey(tenant.environmentId, { revokedAt: new Date() }))).toBe(401);
    const after = await all();
    expect(after.map((count, n) => count - before[n]!)).toEqual([6, 1, 2]);
  });

  test('counts unknown cookies and codes of the console like unknown keys, and open sessions continue', async () => {
    const signIn = (key: string) =>
      api.call('POST', '/v1/console/sessions', { key, body: {}, headers: { 'x-forwarded-for': address } });
    const [cookie] = ((await signIn(tenant.key)).headers['set-cookie'] as unknown as string[])[0]!.split(';');
    const withCookie = (sent: string) => statusOf(null, { cookie: sent });
    const unknownCookie = () => withCookie(`callplane_session=${formatConsoleSecret(randomBytes(32))}`);
    const unknownCode = async () => (await signIn(formatLoginCode(randomBytes(32)))).status;
    const guesses = [unknownCookie, unknownCode, () => statusOf(unknownKey())];
    for (let n = 0; n < 5; n++) expect(await guesses[n % 3]!()).toBe(401);
    for (const guess of guesses) expect(await guess()).toBe(429);
    expect(await withCookie(cookie!)).toBe(200);
    expect((await signIn(tenant.key)).status).toBe(201);
  });

  test('GET /v1/ answers 401 instead of 429 beyond the limit', async () => {
    for (let n = 0; n < 10; n++) expect(await statusOf(unknownKey(), {}, '/v1/')).toBe(401);
    expect(await statusOf(unknownKey(), {}, '/v1/rooms')).toBe(429);
    const headers = { 'x-forwarded-for': address };
    expect((await api.call('POST', '/v1/', { key: unknownKey(), headers })).status).toBe(429);
    expect(await statusOf(tenant.key, {}, '/v1/')).toBe(200);
  });

  test('trusts the address from a trusted proxy only, and counts an IPv6 address by its /64', async () => {
    const from = (address: string) => statusOf(unknownKey(), { 'x-forwarded-for': address });
    for (let n = 0; n < 5; n++) expect(await from(`2001:db8::${n + 1}`)).toBe(401);
    expect(await from('2001:db8::ffff')).toBe(429);
    expect(await from('2001:db8:0:1::1')).toBe(401);
    expect(await from('198.51.100.1')).toBe(401);
  });
});
