import { randomBytes } from 'node:crypto';
import { formatApiKey, formatConsoleSecret, formatLoginCode } from '@callplane/core';
import { expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from '../api.testkit.js';

/** One token a minute, so that the bucket does not refill during a test. */
const UNKNOWN_KEYS = { perMinute: 1, burst: 5 };
const unknownKey = () => formatApiKey('secret', randomBytes(32));
const statusOf = async (api: TestApi, key: string | null, headers: Record<string, string> = {}, path = '/v1/rooms') =>
  (await api.call('GET', path, { key, headers })).status;

test('limits unknown keys per address with 429, and still accepts valid keys from that address', async () => {
  const api = await startTestApi({ unknownKeys: UNKNOWN_KEYS });
  for (let n = 0; n < 5; n++) expect(await statusOf(api, unknownKey())).toBe(401);
  const refused = await api.call('GET', '/v1/rooms', { key: unknownKey() });
  expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED']);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  // A key from before the flood of unknown keys, and a key that is created after it.
  expect(await statusOf(api, api.tenant.key)).toBe(200);
  expect(await statusOf(api, await api.newKey(api.tenant.environmentId))).toBe(200);
  // These are not unknown keys: a key with a wrong checksum, a missing key, and a revoked key.
  expect(await statusOf(api, 'rtc_sk_typo')).toBe(401);
  expect(await statusOf(api, null)).toBe(401);
  expect(await statusOf(api, await api.newKey(api.tenant.environmentId, { revokedAt: new Date() }))).toBe(401);
  const counted = (reason: string, count: number) =>
    `callplane_http_authentication_failures_total{reason="${reason}",app="api"} ${count}`;
  const lines = (await api.metrics()).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([counted('invalid_key', 6), counted('too_many', 1), counted('no_key', 2)]),
  );
});

test('counts unknown cookies and codes of the console like unknown keys, and open sessions go on', async () => {
  const api = await startTestApi({ unknownKeys: UNKNOWN_KEYS });
  const signIn = (key: string) => api.call('POST', '/v1/console/sessions', { key, body: {} });
  const [cookie] = ((await signIn(api.tenant.key)).headers['set-cookie'] as unknown as string[])[0]!.split(';');
  const withCookie = (sent: string) => statusOf(api, null, { cookie: sent });
  const unknownCookie = () => withCookie(`callplane_session=${formatConsoleSecret(randomBytes(32))}`);
  const unknownCode = async () => (await signIn(formatLoginCode(randomBytes(32)))).status;
  const guesses = [unknownCookie, unknownCode, () => statusOf(api, unknownKey())];
  for (let n = 0; n < 5; n++) expect(await guesses[n % 3]!()).toBe(401);
  for (const guess of guesses) expect(await guess()).toBe(429);
  expect(await withCookie(cookie!)).toBe(200);
  expect((await signIn(api.tenant.key)).status).toBe(201);
});

test('GET /v1/ answers 401 instead of 429 beyond the limit', async () => {
  const api = await startTestApi({ unknownKeys: UNKNOWN_KEYS });
  for (let n = 0; n < 10; n++) expect(await statusOf(api, unknownKey(), {}, '/v1/')).toBe(401);
  expect(await statusOf(api, unknownKey(), {}, '/v1/rooms')).toBe(429);
  expect(await statusOf(api, api.tenant.key, {}, '/v1/')).toBe(200);
});

test('looks up 300 concurrent unknown keys beyond the limit in a few statements', async () => {
  const api = await startTestApi({ unknownKeys: UNKNOWN_KEYS });
  for (let n = 0; n < 6; n++) await statusOf(api, unknownKey());
  const before = api.keyLookUps();
  const statuses = await Promise.all(Array.from({ length: 300 }, () => statusOf(api, unknownKey())));
  expect(new Set(statuses)).toEqual(new Set([429]));
  const statements = api.keyLookUps() - before;
  expect(statements).toBeGreaterThan(0);
  // At most ten statements a second, for as many seconds as a slow machine needs.
  expect(statements).toBeLessThan(100);
});

test('trusts the address from a trusted proxy only, and counts an IPv6 address by its /64', async () => {
  const api = await startTestApi({ unknownKeys: UNKNOWN_KEYS, trustProxy: 1 });
  const from = (address: string) => statusOf(api, unknownKey(), { 'x-forwarded-for': address });
  for (let n = 0; n < 5; n++) expect(await from(`2001:db8::${n + 1}`)).toBe(401);
  expect(await from('2001:db8::ffff')).toBe(429);
  expect(await from('2001:db8:0:1::1')).toBe(401);
  expect(await from('192.0.2.1')).toBe(401);

  const untrusting = await startTestApi({ unknownKeys: UNKNOWN_KEYS });
  const statuses = [];
  for (let n = 0; n < 6; n++) {
    statuses.push(await statusOf(untrusting, unknownKey(), { 'x-forwarded-for': `192.0.2.${n}` }));
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
});
