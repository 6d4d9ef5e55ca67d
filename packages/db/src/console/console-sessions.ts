import {
  CONSOLE_LINK_SECONDS,
  CONSOLE_SESSION_IDLE_SECONDS,
  CONSOLE_SESSIONS_MAX,
  readScopes,
  type ConsoleSession,
  type Caller,
  type Scope,
  type Tenant,
} from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { Prisma, type ConsoleSession as StoredSession } from '../generated/client.js';
import { lockEnvironment } from '../api-keys/api-keys.repository.js';

export interface ConsoleIdentity extends Caller {
  readonly session: ConsoleSession;
  /** The earliest end: of the session, of its key, or for want of requests. */
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  /** Hexadecimal hash of the key that made the session; null for a link. */
  readonly apiKeyHash: string | null;
  readonly usedAt: Date;
}

type NewConsoleSession = Pick<StoredSession, 'id' | 'environmentId' | 'apiKeyId' | 'readOnly' | 'lifetimeSeconds'> & {
  scopes: readonly Scope[];
};

type IdentityRow = Omit<ConsoleSession, 'source'> &
  Omit<ConsoleIdentity, 'session' | 'keyId' | 'keyType'> & { hash: string; apiKeyId: string | null };

/** Links that work and open sessions `s` of an environment. A session ends with its key `k`. */
function openOf(environmentId: string, now: Date): Prisma.Sql {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  return Prisma.sql`console_sessions s LEFT JOIN api_keys k ON k.id = s.api_key_id
    WHERE s.environment_id = ${environmentId} AND least(s.expires_at, k.expires_at) > ${at} AND k.revoked_at IS NULL
      AND (s.secret_hash IS NULL OR s.used_at > ${at} - ${CONSOLE_SESSION_IDLE_SECONDS}::int * interval '1 second')`;
}

/** @param hash of the value of its cookie, or of the code of the link that it makes. */
export function insertConsoleSession(
  database: Database,
  { id, environmentId, apiKeyId, scopes, readOnly, lifetimeSeconds }: NewConsoleSession,
  hash: { secretHash: Uint8Array } | { codeHash: Uint8Array },
  now: Date,
): Promise<'opened' | 'limit'> {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  const [codeHash, secretHash, seconds] =
    'codeHash' in hash ? [hash.codeHash, null, CONSOLE_LINK_SECONDS] : [null, hash.secretHash, lifetimeSeconds];
  return database.transaction(async (tx) => {
    await lockEnvironment(tx, environmentId);
    const opened = await tx.$executeRaw`
      INSERT INTO console_sessions (id, environment_id, api_key_id, code_hash, secret_hash, scopes, read_only,
        lifetime_seconds, created_at, used_at, expires_at)
      SELECT ${id}, ${environmentId}, ${apiKeyId}, ${codeHash}::bytea, ${secretHash}::bytea, ${[...scopes]}::text[],
        ${readOnly}::boolean, ${lifetimeSeconds}::int, ${at}, ${at}, ${at} + ${seconds}::int * interval '1 second'
      WHERE (SELECT count(*) FROM ${openOf(environmentId, now)}) < ${CONSOLE_SESSIONS_MAX}::int`;
    return opened === 0 ? 'limit' : 'opened';
  });
}

/** The tenant of an unused link, by the hash of its code; null when it is unknown, used or expired. */
export async function findConsoleLink(
  db: Db,
  codeHash: Uint8Array,
  now: Date,
): Promise<(Tenant & { id: string }) | null> {
  const link = await db.consoleSession.findUnique({
    where: { codeHash: new Uint8Array(codeHash), expiresAt: { gt: now } },
    select: { id: true, environmentId: true, environment: { select: { projectId: true } } },
  });
  return link && { id: link.id, environmentId: link.environmentId, ...link.environment };
}

/**
 * Turns a link into an open session. Of concurrent calls with the same code, one succeeds.
 * @param readOnly also restricts a link that permits more.
 * @returns the id of the session; null when the code is unknown, used or expired.
 */
export async function useConsoleLink(
  db: Db,
  { environmentId }: Tenant,
  codeHash: Uint8Array,
  { secretHash, readOnly }: { secretHash: Uint8Array; readOnly: boolean },
  now: Date,
): Promise<string | null> {
  const unused = { codeHash: new Uint8Array(codeHash), environmentId, expiresAt: { gt: now } };
  const link = await db.consoleSession.findUnique({ where: unused });
  if (link === null) return null;
  const { count } = await db.consoleSession.updateMany({
    where: unused,
    data: {
      codeHash: null,
      secretHash: new Uint8Array(secretHash),
      createdAt: now,
      usedAt: now,
      expiresAt: new Date(now.getTime() + link.lifetimeSeconds * 1000),
      readOnly: link.readOnly || readOnly,
      scopes: readOnly ? readScopes(link.scopes as Scope[]) : link.scopes,
    },
  });
  return count === 0 ? null : link.id;
}

/** Finds open sessions by hash, for the authentication of requests. Hashes and the keys of the map are hexadecimal. */
export async function findConsoleSessionsByHash(
  db: TypedSql,
  hashes: readonly string[],
): Promise<Map<string, ConsoleIdentity>> {
  const rows = await db.$queryRaw<IdentityRow[]>`
    SELECT requested.hash, s.id, s.read_only AS "readOnly", p.name AS "projectName", e.name AS "environmentName",
      s.created_at AS "createdAt", LEAST(s.expires_at, k.expires_at) AS "endsAt", e.project_id AS "projectId",
      e.id AS "environmentId", s.api_key_id AS "apiKeyId", encode(k.key_hash, 'hex') AS "apiKeyHash", s.scopes,
      LEAST(s.expires_at, k.expires_at,
        s.used_at + ${CONSOLE_SESSION_IDLE_SECONDS}::int * interval '1 second') AS "expiresAt", k.revoked_at AS "revokedAt",
      s.used_at AS "usedAt"
    FROM unnest(${[...hashes]}::text[]) AS requested (hash)
    JOIN console_sessions s ON s.secret_hash = decode(requested.hash, 'hex')
    JOIN environments e ON e.id = s.environment_id
    JOIN projects p ON p.id = e.project_id
    LEFT JOIN api_keys k ON k.id = s.api_key_id`;
  return new Map(rows.map(({ hash, ...row }) => [hash, identityOf(row)]));
}

function identityOf(row: Omit<IdentityRow, 'hash'>): ConsoleIdentity {
  const { id, readOnly, projectName, environmentName, createdAt, endsAt, apiKeyId, ...caller } = row;
  const source = apiKeyId === null ? 'link' : 'api_key';
  const session = { id, source, readOnly, projectName, environmentName, createdAt, endsAt } as const;
  return { ...caller, keyId: apiKeyId ?? id, keyType: 'secret', session };
}

export async function touchConsoleSession(db: Db, { environmentId }: Tenant, id: string, now: Date): Promise<void> {
  await db.consoleSession.updateMany({ where: { id, environmentId }, data: { usedAt: now } });
}

type ConsoleSessionListing = Omit<StoredSession, 'codeHash' | 'secretHash' | 'lifetimeSeconds'> & {
  state: 'link' | 'open';
};

/** Lists open sessions and unused links, oldest first. */
export function listConsoleSessions(
  db: TypedSql,
  environmentId: string,
  now: Date,
): PromiseLike<ConsoleSessionListing[]> {
  return db.$queryRaw<ConsoleSessionListing[]>`
    SELECT s.id, s.environment_id AS "environmentId", s.api_key_id AS "apiKeyId", s.scopes, s.read_only AS "readOnly",
      s.created_at AS "createdAt", s.expires_at AS "expiresAt", s.used_at AS "usedAt",
      CASE WHEN s.secret_hash IS NULL THEN 'link' ELSE 'open' END AS state
    FROM ${openOf(environmentId, now)} ORDER BY s.id`;
}

/** @returns the ended ones, with the hexadecimal hash for the notice `consoleSessionEnded`; null for a link. */
export async function endConsoleSessions(
  db: Db,
  which: { id?: string; environmentId?: string },
): Promise<{ id: string; secretHash: string | null }[]> {
  const found = await db.consoleSession.findMany({ where: which, select: { id: true, secretHash: true } });
  await db.consoleSession.deleteMany({ where: { id: { in: found.map(({ id }) => id) } } });
  return found.map(({ id, secretHash }) => ({
    id,
    secretHash: secretHash === null ? null : Buffer.from(secretHash).toString('hex'),
  }));
}

export function deleteExpiredConsoleSessions(db: TypedSql, now: Date): PromiseLike<number> {
  return db.$executeRaw`DELETE FROM console_sessions WHERE expires_at <= ${now.toISOString()}::timestamptz`;
}
