import type { ApiKeyType, Scope, Tenant } from '@callplane/core';
import type { Db } from '../client/database.js';
import { environmentExists } from '../tenants/tenants.repository.js';

/** A key as its owner may see it afterwards. */
export interface ApiKeyRow {
  id: string;
  environmentId: string;
  type: ApiKeyType;
  name: string | null;
  /** Its last four characters. */
  keyHint: string;
  scopes: Scope[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
}

/** `keyHash`: the SHA-256 of the whole key, all that is stored of it. */
export type NewApiKey = Omit<ApiKeyRow, 'revokedAt'> & { keyHash: Uint8Array<ArrayBuffer> };

/** Whose key it is and what it may do: what authentication needs. Whether it is still valid is the caller's to judge. */
export interface ApiKeyIdentity extends Tenant {
  keyId: string;
  keyType: ApiKeyType;
  scopes: Scope[];
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export async function insertApiKey(db: Db, key: NewApiKey): Promise<'created' | 'environment_not_found'> {
  // Environments are never deleted, so one that is found here is still there for the insert.
  if (!(await environmentExists(db, key.environmentId))) return 'environment_not_found';
  await db.apiKey.create({ data: key, select: { id: true } });
  return 'created';
}

/** One statement, typed here because it authenticates requests: the model API would look the environment up by a second. */
export async function findApiKeyByHash(db: Db, keyHash: Uint8Array): Promise<ApiKeyIdentity | null> {
  const [row] = await db.$queryRaw<ApiKeyIdentity[]>`
    SELECT k.id AS "keyId", k.type AS "keyType", k.scopes, e.project_id AS "projectId", e.id AS "environmentId",
      k.expires_at AS "expiresAt", k.revoked_at AS "revokedAt"
    FROM api_keys k JOIN environments e ON e.id = k.environment_id
    WHERE k.key_hash = ${keyHash}`;
  return row ?? null;
}

/** Oldest first, the revoked and expired ones too; null when there is no such environment. */
export async function listApiKeys(db: Db, environmentId: string): Promise<ApiKeyRow[] | null> {
  if (!(await environmentExists(db, environmentId))) return null;
  const keys = await db.apiKey.findMany({
    where: { environmentId },
    orderBy: { id: 'asc' },
    omit: { keyHash: true },
  });
  return keys as ApiKeyRow[];
}

/**
 * Revokes a key; one that is revoked already stays so since then. For operators: takes the bare id.
 * @returns the key's hash, for the notice `apiKeyRevoked`; null when there is no such key.
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
