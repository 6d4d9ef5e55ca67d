import type { ApiKeyType, Scope, Tenant } from '@callplane/core';
import type { Db, TypedSql } from '../client/database.js';
import type { ApiKey, Environment, Project } from '../generated/client.js';
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

export async function createProject(db: Db, project: Project): Promise<void> {
  await db.project.create({ data: project, select: { id: true } });
}

export async function createEnvironment(
  db: Db,
  environment: Environment,
): Promise<'created' | 'project_not_found' | 'name_taken'> {
  // Projects are never deleted, so one that exists here still exists for the insert.
  const project = await db.project.findUnique({ where: { id: environment.projectId }, select: { id: true } });
  if (project === null) return 'project_not_found';
  const { count } = await db.environment.createMany({ data: [environment], skipDuplicates: true });
  return count === 1 ? 'created' : 'name_taken';
}

/** Lists all projects, oldest first, without pages: a deployment has few. */
export function listProjects(db: Db): Promise<Project[]> {
  return db.project.findMany({ orderBy: { id: 'asc' } });
}

/** Lists environments, oldest first; null when the project does not exist. */
export async function listEnvironments(db: Db, projectId: string): Promise<Environment[] | null> {
  const orderBy = { id: 'asc' as const };
  const project = await db.project.findUnique({ where: { id: projectId }, select: { environments: { orderBy } } });
  return project?.environments ?? null;
}

/**
 * Lets transactions that count rows of an environment run one after the other, so that they cannot exceed a limit
 * together. Other work with the environment takes weaker locks.
 */
export async function lockEnvironment(tx: TypedSql, environmentId: string): Promise<void> {
  await tx.$executeRaw`SELECT FROM environments WHERE id = ${environmentId} FOR NO KEY UPDATE`;
}
