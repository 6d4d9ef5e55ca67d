import { expect, test } from '@jest/globals';
import { revokeApiKey } from '@callplane/db';
import { createTestTenant, eventually } from '@callplane/testing';
import { measured, startStack } from './faults.testkit.js';

test('a key is invalid within five seconds of its revocation if no notice can arrive', async () => {
  const stack = await startStack();
  const api = await stack.spawnApi();
  const { key, keyId } = await createTestTenant(stack.database);
  const status = async () => (await stack.call(api, 'GET', '/v1/', { key })).status;
  await stack.redis.stop();
  expect(await status()).toBe(200);
  await revokeApiKey(stack.database.prisma, keyId, new Date());
  // The key is still cached: otherwise the test would prove nothing.
  expect(await status()).toBe(200);
  const startedAtMs = performance.now();
  await eventually(async () => (await status()) === 401, { intervalMs: 20 });
  const ms = performance.now() - startedAtMs;
  measured({ 'ms without a notice': ms });
  // The last request may start just before the end of the five seconds, on a busy machine.
  expect(ms).toBeLessThan(20_000);
});
