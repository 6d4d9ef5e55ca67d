import { beforeAll, expect, test } from '@jest/globals';
import { revokeApiKey } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { createTestTenant, eventually, type TestApp } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

let stack: Stack;
let api: TestApp;
beforeAll(async () => {
  stack = await startStack();
  api = await stack.spawnApi();
});

async function msUntilRefused(key: string): Promise<number> {
  const startedAt = performance.now();
  await eventually(async () => (await stack.call(api, 'GET', '/v1/', { key })).status === 401, { intervalMs: 20 });
  return performance.now() - startedAt;
}

test('the notice of its revocation invalidates a key before its cache entry expires', async () => {
  const { key, keyId } = await createTestTenant(stack.database);
  expect((await stack.call(api, 'GET', '/v1/', { key })).status).toBe(200);
  const revoked = await revokeApiKey(stack.database.prisma, keyId, new Date());
  await publishNotice(stack.producer.redis, 'apiKeyRevoked', Buffer.from(revoked!.keyHash).toString('hex'));
  const ms = await msUntilRefused(key);
  measured({ 'ms with the notice': ms });
  // The cache entry lives for five seconds.
  expect(ms).toBeLessThan(4000);
});

test('a key is invalid within five seconds of its revocation if no notice can arrive', async () => {
  const { key, keyId } = await createTestTenant(stack.database);
  await stack.redis.stop();
  expect((await stack.call(api, 'GET', '/v1/', { key })).status).toBe(200);
  await revokeApiKey(stack.database.prisma, keyId, new Date());
  // The key is still cached: otherwise the test would prove nothing.
  expect((await stack.call(api, 'GET', '/v1/', { key })).status).toBe(200);
  const ms = await msUntilRefused(key);
  measured({ 'ms without': ms });
  // The last request may start just before the end of the five seconds, on a busy machine.
  expect(ms).toBeLessThan(20_000);
});
