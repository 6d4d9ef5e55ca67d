import { createPublicKey, sign, verify, type JsonWebKey } from 'node:crypto';
import { parseMasterKeys } from '@callplane/core';
import { createTestDatabase } from '@callplane/testing';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Database } from '../client/database.js';
import {
  activateDueSigningKey,
  ensureSigningKey,
  rotateSigningKey,
  thumbprint,
  deleteExpiredSigningKeys,
  listSigningKeys,
  loadSigningKeys,
} from './signing-keys.repository.js';

const masterKeys = parseMasterKeys([`k1:${Buffer.alloc(32, 1).toString('base64')}`]);
const start = new Date('2030-01-01T00:00:00.000Z');
const after = (seconds: number) => new Date(start.getTime() + seconds * 1000);
/** How long a retired key verifies: the longest token lifetime and the margin. */
const VERIFIES_SECONDS = 3600 + 300;

let database: Database;
beforeEach(async () => {
  database = new Database({ url: (await createTestDatabase()).url, poolMax: 8 });
});
afterEach(() => database.close());

test('creates one active key when several instances start at once', async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => ensureSigningKey(database, masterKeys, start)));
  expect(made.filter(Boolean)).toHaveLength(1);
  expect(await listSigningKeys(database.prisma)).toEqual([
    {
      id: expect.any(String),
      status: 'active',
      createdAt: start,
      activatesAt: start,
      retiredAt: null,
      verifiesUntil: null,
    },
  ]);
  expect(await ensureSigningKey(database, masterKeys, after(1))).toBe(false);
});

test("publishes a key that verifies the signer's signatures, without any private member", async () => {
  await ensureSigningKey(database, masterKeys, start);
  const { signer, jwks } = await loadSigningKeys(database, masterKeys, start);
  const jwk = jwks.keys[0]!;
  expect(Object.keys(jwk).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  expect(jwk).toMatchObject({ kid: signer.kid, alg: 'ES256', use: 'sig', kty: 'EC', crv: 'P-256' });
  expect(jwk.kid).toBe(thumbprint(jwk));
  const message = Buffer.from('token');
  const publicKey = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  expect(verify('sha256', message, publicKey, sign('sha256', message, signer.privateKey))).toBe(true);
});

test('stores a private key sealed for its own id, which only its master key opens', async () => {
  await ensureSigningKey(database, masterKeys, start);
  const row = await database.prisma.signingKey.findFirstOrThrow();
  expect(row.privateKeySealed).toMatch(/^s1\.k1\./);
  const others = parseMasterKeys([`k2:${Buffer.alloc(32, 2).toString('base64')}`]);
  await expect(loadSigningKeys(database, others, start)).rejects.toThrow('master key "k1" is not configured');
  const rotated = parseMasterKeys([
    `k2:${Buffer.alloc(32, 2).toString('base64')}`,
    `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  ]);
  expect((await loadSigningKeys(database, rotated, start)).signer.kid).toBe(row.id);
  await database.prisma.signingKey.update({ where: { id: row.id }, data: { id: 'another' } });
  await expect(loadSigningKeys(database, masterKeys, start)).rejects.toThrow();
});

test('publishes a new key before it signs, and lets at most one key wait', async () => {
  await ensureSigningKey(database, masterKeys, start);
  const before = await loadSigningKeys(database, masterKeys, start);
  const rotations = await Promise.all(
    Array.from({ length: 6 }, () => rotateSigningKey(database, masterKeys, after(10), 300)),
  );
  const [next, ...more] = rotations.filter(({ outcome }) => outcome === 'rotated');
  expect(more).toEqual([]);
  expect(next).toMatchObject({ activatesAt: after(310) });
  // The other callers get the waiting key.
  expect(new Set(rotations.map(({ kid }) => kid))).toEqual(new Set([next!.kid]));

  expect(await activateDueSigningKey(database, after(309))).toBeNull();
  const published = await loadSigningKeys(database, masterKeys, after(309));
  expect(published.signer.kid).toBe(before.signer.kid);
  expect(published.jwks.keys.map(({ kid }) => kid)).toEqual([next!.kid, before.signer.kid]);

  expect(await activateDueSigningKey(database, after(310))).toBe(next!.kid);
  expect((await loadSigningKeys(database, masterKeys, after(310))).signer.kid).toBe(next!.kid);
});

test('lets one of several concurrent instances activate a key, and retires the old one without its private part', async () => {
  await ensureSigningKey(database, masterKeys, start);
  const old = (await loadSigningKeys(database, masterKeys, start)).signer.kid;
  const { kid } = await rotateSigningKey(database, masterKeys, start, 0);
  const activated = await Promise.all(Array.from({ length: 8 }, () => activateDueSigningKey(database, after(1))));
  expect(activated.filter((result) => result !== null)).toEqual([kid]);
  expect(await database.prisma.signingKey.findUniqueOrThrow({ where: { id: old } })).toMatchObject({
    status: 'retired',
    privateKeySealed: null,
    retiredAt: after(1),
    verifiesUntil: after(1 + VERIFIES_SECONDS),
  });
  expect(await database.prisma.signingKey.count({ where: { status: 'active' } })).toBe(1);
});

test('keeps a retired key in the JWKS until the last token that it signed has expired, and then deletes it', async () => {
  await ensureSigningKey(database, masterKeys, start);
  const old = (await loadSigningKeys(database, masterKeys, start)).signer.kid;
  await rotateSigningKey(database, masterKeys, start, 0);
  await activateDueSigningKey(database, start);
  const kidsAt = async (now: Date) =>
    (await loadSigningKeys(database, masterKeys, now)).jwks.keys.map(({ kid }) => kid);

  expect(await kidsAt(after(VERIFIES_SECONDS - 1))).toContain(old);
  expect(await deleteExpiredSigningKeys(database.sql, after(VERIFIES_SECONDS - 1))).toBe(0);
  expect(await kidsAt(after(VERIFIES_SECONDS))).not.toContain(old);
  expect(await deleteExpiredSigningKeys(database.sql, after(VERIFIES_SECONDS))).toBe(1);
  expect(await listSigningKeys(database.prisma)).toHaveLength(1);
});

test('lets a rotation that runs concurrently with an activation succeed or report the waiting key', async () => {
  await ensureSigningKey(database, masterKeys, start);
  await rotateSigningKey(database, masterKeys, start, 0);
  const [activated, rotation] = await Promise.all([
    activateDueSigningKey(database, start),
    rotateSigningKey(database, masterKeys, start, 60),
  ]);
  expect(activated).not.toBeNull();
  expect(rotation.outcome).toMatch(/^(rotated|waiting)$/);
  expect(await database.prisma.signingKey.count({ where: { status: 'active' } })).toBe(1);
});
