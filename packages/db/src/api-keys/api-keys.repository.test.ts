import { formatApiKey, hashApiKey } from '@callplane/core';
import { createTestDatabase } from '@callplane/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Database } from '../client/database.js';
import { createEnvironment, createProject } from '../tenants/tenants.repository.js';
import { findApiKeysByHash, insertApiKey, listApiKeys, revokeApiKey, type NewApiKey } from './api-keys.repository.js';

const createdAt = new Date('2030-01-01T00:00:00.123Z');
const expiresAt = new Date('2030-04-01T00:00:00.000Z');
let database: Database;

beforeAll(async () => {
  database = new Database({ url: (await createTestDatabase()).url, poolMax: 4 });
  await createProject(database.prisma, { id: 'proj_a', name: 'a', createdAt });
  for (const id of ['env_a', 'env_b']) {
    await createEnvironment(database.prisma, { id, projectId: 'proj_a', name: id, createdAt });
  }
});
afterAll(() => database.close());

test('finds a key with its tenant by its hash alone', async () => {
  const key = keyFrom('key_find', 1);
  expect(await insertApiKey(database.prisma, key)).toBe('created');
  expect(await findByHash(key.keyHash)).toEqual({
    keyId: 'key_find',
    keyType: 'secret',
    scopes: ['rooms:read', 'tokens:create'],
    projectId: 'proj_a',
    environmentId: 'env_a',
    expiresAt,
    revokedAt: null,
  });
  expect(await findByHash(keyFrom('key_other', 2).keyHash)).toBeUndefined();
});

test('rejects a key of an environment that does not exist', async () => {
  const outcome = await insertApiKey(database.prisma, { ...keyFrom('key_lost', 3), environmentId: 'env_lost' });
  expect(outcome).toBe('environment_not_found');
  expect(await listApiKeys(database.prisma, 'env_lost')).toBeNull();
});

test('lists the keys of an environment oldest first, without keys of others and without hashes', async () => {
  for (const [id, seed] of [['key_b2', 5] as const, ['key_b1', 4] as const]) {
    await insertApiKey(database.prisma, { ...keyFrom(id, seed), environmentId: 'env_b' });
  }
  const shown = { environmentId: 'env_b', type: 'secret', name: null, createdAt, expiresAt, revokedAt: null };
  const scopes = ['rooms:read', 'tokens:create'];
  expect(await listApiKeys(database.prisma, 'env_b')).toEqual([
    { ...shown, scopes, id: 'key_b1', keyHint: keyFrom('key_b1', 4).keyHint },
    { ...shown, scopes, id: 'key_b2', keyHint: keyFrom('key_b2', 5).keyHint },
  ]);
});

test('keeps the first time of revocation when a key is revoked again, and returns its hash for the notice', async () => {
  const key = keyFrom('key_revoked', 6);
  await insertApiKey(database.prisma, key);
  const first = new Date('2030-02-01T00:00:00.000Z');
  const expected = { keyHash: key.keyHash, revokedAt: first };
  expect(await revokeApiKey(database.prisma, 'key_revoked', first)).toEqual(expected);
  expect(await revokeApiKey(database.prisma, 'key_revoked', new Date('2030-03-01T00:00:00.000Z'))).toEqual(expected);
  expect(await findByHash(key.keyHash)).toMatchObject({ revokedAt: first });
  expect(await revokeApiKey(database.prisma, 'key_lost', first)).toBeNull();
});

async function findByHash(keyHash: Uint8Array) {
  const hash = Buffer.from(keyHash).toString('hex');
  return (await findApiKeysByHash(database.sql, [hash])).get(hash);
}

function keyFrom(id: string, seed: number): NewApiKey {
  const key = formatApiKey('secret', Buffer.alloc(32, seed));
  return {
    id,
    environmentId: 'env_a',
    type: 'secret',
    name: null,
    keyHash: new Uint8Array(hashApiKey(key)),
    keyHint: key.slice(-4),
    scopes: ['rooms:read', 'tokens:create'],
    createdAt,
    expiresAt,
  };
}
