import type { ApiKeyType, Scope, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import type { ApiKey } from '../generated/client.js';
import { ROW } from '../operators/operator-lists.js';

export type ApiKeyRow = Omit<ApiKey, 'keyHash' | 'type' | 'scopes'> & { type: ApiKeyType; scopes: Scope[] };

/** `keyHash` is the SHA-256 of the whole key; the key itself is not stored. */
type NewApiKey = Omit<ApiKeyRow, 'revokedAt'> & { keyHash: Uint8Array<ArrayBuffer> };

/** For authentication. The caller checks the expiry and the revocation. */
type ApiKeyIdentity = Tenant &
  Pick<ApiKeyRow, 'scopes' | 'expiresAt' | 'revokedAt'> & { keyId: string; keyType: ApiKeyType };

export async function insertApiKey(db: Db, key: NewApiKey): Promise<void> {
  await db.apiKey.create({ data: key, select: { id: true } });
}

/** Finds keys by hash, for the authentication of every request. Hashes and the keys of the map are hexadecimal. */
export async function findApiKeysByHash(db: TypedSql, hashes: readonly string[]): Promise<Map<string, ApiKeyIdentity>> {
  const rows = await db.$queryRaw<(ApiKeyIdentity & { hash: string })[]>`
    SELECT requested.hash, k.id AS "keyId", k.type AS "keyType", k.scopes, e.project_id AS "projectId",
      e.id AS "environmentId", k.expires_at AS "expiresAt", k.revoked_at AS "revokedAt"
    FROM unnest(${[...hashes]}::text[]) AS requested(hash)
    JOIN api_keys k ON k.key_hash = decode(requested.hash, 'hex')
    JOIN environments e ON e.id = k.environment_id`;
  return new Map(rows.map(({ hash, ...identity }) => [hash, identity]));
}

/** Lists keys oldest first, including revoked and expired ones. */
export async function listApiKeys(db: Db, environmentId: string): Promise<ApiKeyRow[]> {
  const keys = { where: { environmentId }, orderBy: { id: 'asc' } } as const;
  const select = { ...ROW, type: true, name: true, keyHint: true, scopes: true, expiresAt: true, revokedAt: true };
  return (await db.apiKey.findMany({ ...keys, select })) as ApiKeyRow[];
}

/**
 * A key that is already revoked keeps its time of revocation. For operators: without a tenant.
 * @returns the hash, for the notice `apiKeyRevoked`; null when the key does not exist.
 */
export async function revokeApiKey(
  db: Db,
  keyId: string,
  now: Date,
): Promise<{ keyHash: Uint8Array; revokedAt: Date } | null> {
  await db.apiKey.updateMany({ where: { id: keyId, revokedAt: null }, data: { revokedAt: now } });
  const key = await db.apiKey.findUnique({ where: { id: keyId }, select: { keyHash: true, revokedAt: true } });
  return key === null ? null : { keyHash: key.keyHash, revokedAt: key.revokedAt ?? now };
}
