import {
  CONSOLE_LINK_SECONDS,
  CONSOLE_SESSION_IDLE_SECONDS,
  CONSOLE_SESSIONS_MAX,
  type ConsoleSession,
  type Caller,
  type Scope,
  type Tenant,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { deleteBatch } from '../client/delete-batch.js';
import { Prisma } from '../generated/client.js';

/** The caller of a session for authentication, which checks the expiry and the revocation. */
export interface ConsoleIdentity extends Caller {
  readonly session: ConsoleSession;
  /** The earliest end: of the session, of its key, or for want of requests. */
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  /** Hexadecimal hash of the key that made the session; null for a link. */
  readonly apiKeyHash: string | null;
  readonly usedAt: Date;
}

/** A session or link as operators see it. */
export interface ConsoleSessionRow {
  id: string;
  environmentId: string;
  state: 'open' | 'link';
  /** The key that made the session; null for a link of an operator. */
  apiKeyId: string | null;
  readOnly: boolean;
  scopes: Scope[];
  createdAt: Date;
  usedAt: Date;
  expiresAt: Date;
}

export interface NewConsoleSession {
  id: string;
  environmentId: string;
  apiKeyId: string | null;
  scopes: readonly Scope[];
  readOnly: boolean;
  lifetimeSeconds: number;
}

interface IdentityRow extends Omit<ConsoleSession, 'source'> {
  hash: string;
  projectId: string;
  environmentId: string;
  apiKeyId: string | null;
  apiKeyHash: string | null;
  scopes: Scope[];
  expiresAt: Date;
  revokedAt: Date | null;
  usedAt: Date;
}

const IDLE = Prisma.sql`${CONSOLE_SESSION_IDLE_SECONDS}::int * interval '1 second'`;
/** Whether `s` is a link that works or a session that has not ended. A session ends with its key. */
const IS_OPEN = Prisma.sql`s.expires_at > now() AND (s.secret_hash IS NULL OR s.used_at + ${IDLE} > now())
  AND NOT EXISTS (
    SELECT 1 FROM api_keys k WHERE k.id = s.api_key_id AND (k.revoked_at IS NOT NULL OR k.expires_at <= now()))`;

/** Opens a session. The hash is that of the value of its cookie. */
export function openConsoleSession(
  database: Database,
  session: NewConsoleSession,
  secretHash: Uint8Array,
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  return insert(database, session, { secretHash, codeHash: null, seconds: session.lifetimeSeconds });
}

/** Makes a link. The hash is that of its code. */
export function createConsoleLink(
  database: Database,
  session: NewConsoleSession,
  codeHash: Uint8Array,
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  return insert(database, session, { secretHash: null, codeHash, seconds: CONSOLE_LINK_SECONDS });
}

function insert(
  database: Database,
  { id, environmentId, apiKeyId, scopes, readOnly, lifetimeSeconds }: NewConsoleSession,
  stored: { secretHash: Uint8Array | null; codeHash: Uint8Array | null; seconds: number },
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  const hex = (hash: Uint8Array | null) => (hash === null ? null : Buffer.from(hash).toString('hex'));
  return database.sqlTransaction(async (sql) => {
    // Sign-ins of an environment go one at a time, so that their number cannot exceed the limit. Other work with the
    // environment takes weaker locks. The count is a statement of its own: it sees what the one before has committed.
    const [environment] = await sql.$queryRaw<unknown[]>`
      SELECT 1 AS found FROM environments WHERE id = ${environmentId} FOR NO KEY UPDATE`;
    if (environment === undefined) return 'environment_not_found';
    const [{ count }] = await sql.$queryRaw<[{ count: number }]>`
      SELECT count(*)::int AS count FROM console_sessions s WHERE s.environment_id = ${environmentId} AND ${IS_OPEN}`;
    if (count >= CONSOLE_SESSIONS_MAX) return 'limit';
    await sql.$executeRaw`
      INSERT INTO console_sessions
        (id, environment_id, api_key_id, code_hash, secret_hash, scopes, read_only, lifetime_seconds, expires_at)
      VALUES (${id}, ${environmentId}, ${apiKeyId}, decode(${hex(stored.codeHash)}, 'hex'),
        decode(${hex(stored.secretHash)}, 'hex'), ${[...scopes]}::text[], ${readOnly}, ${lifetimeSeconds}::int,
        now() + ${stored.seconds}::int * interval '1 second')`;
    return 'opened';
  });
}

/** The tenant of an unused link, by the hash of its code; null when it is unknown, used or expired. */
export async function findConsoleLink(db: TypedSql, codeHash: Uint8Array): Promise<(Tenant & { id: string }) | null> {
  const [row] = await db.$queryRaw<(Tenant & { id: string })[]>`
    SELECT s.id, e.project_id AS "projectId", e.id AS "environmentId"
    FROM console_sessions s JOIN environments e ON e.id = s.environment_id
    WHERE s.code_hash = decode(${Buffer.from(codeHash).toString('hex')}, 'hex') AND s.expires_at > now()`;
  return row ?? null;
}

/**
 * Turns a link into an open session. Of concurrent calls with the same code, one succeeds.
 * @param readOnly also restricts a link that permits more.
 * @returns the id of the session; null when the code is unknown, used or expired.
 */
export async function useConsoleLink(
  db: TypedSql,
  { environmentId }: Tenant,
  codeHash: Uint8Array,
  made: { secretHash: Uint8Array; readOnly: boolean },
): Promise<string | null> {
  const [row] = await db.$queryRaw<{ id: string }[]>`
    UPDATE console_sessions
    SET code_hash = NULL, secret_hash = decode(${Buffer.from(made.secretHash).toString('hex')}, 'hex'),
      created_at = now(), used_at = now(), expires_at = now() + lifetime_seconds * interval '1 second',
      read_only = read_only OR ${made.readOnly}::boolean,
      scopes = CASE WHEN ${made.readOnly}::boolean
        THEN ARRAY(SELECT scope FROM unnest(scopes) scope WHERE scope LIKE '%:read') ELSE scopes END
    WHERE code_hash = decode(${Buffer.from(codeHash).toString('hex')}, 'hex')
      AND environment_id = ${environmentId} AND expires_at > now()
    RETURNING id`;
  return row?.id ?? null;
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
      LEAST(s.expires_at, k.expires_at, s.used_at + ${IDLE}) AS "expiresAt", k.revoked_at AS "revokedAt",
      s.used_at AS "usedAt"
    FROM unnest(${[...hashes]}::text[]) AS requested (hash)
    JOIN console_sessions s ON s.secret_hash = decode(requested.hash, 'hex')
    JOIN environments e ON e.id = s.environment_id
    JOIN projects p ON p.id = e.project_id
    LEFT JOIN api_keys k ON k.id = s.api_key_id`;
  return new Map(rows.map((row) => [row.hash, identityOf(row)]));
}

function identityOf(row: IdentityRow): ConsoleIdentity {
  const { id, readOnly, projectName, environmentName, createdAt, endsAt, apiKeyId } = row;
  const source = apiKeyId === null ? 'link' : 'api_key';
  return {
    projectId: row.projectId,
    environmentId: row.environmentId,
    keyId: apiKeyId ?? id,
    keyType: 'secret',
    scopes: row.scopes,
    session: { id, source, readOnly, projectName, environmentName, createdAt, endsAt },
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
    apiKeyHash: row.apiKeyHash,
    usedAt: row.usedAt,
  };
}

/** Notes a request of an open session, so that it does not end for want of requests. */
export async function touchConsoleSession(db: TypedSql, { environmentId }: Tenant, id: string): Promise<void> {
  await db.$executeRaw`
    UPDATE console_sessions s SET used_at = now()
    WHERE s.id = ${id} AND s.environment_id = ${environmentId} AND ${IS_OPEN}`;
}

/**
 * Ends a session of the tenant. Repeating it changes nothing.
 * @returns the hexadecimal hash of its cookie, for the notice `consoleSessionEnded`; null when it has ended before.
 */
export async function endConsoleSession(db: TypedSql, { environmentId }: Tenant, id: string): Promise<string | null> {
  const [ended] = await db.$queryRaw<{ hash: string | null }[]>`
    DELETE FROM console_sessions WHERE id = ${id} AND environment_id = ${environmentId}
    RETURNING encode(secret_hash, 'hex') AS hash`;
  return ended?.hash ?? null;
}

/** Lists open sessions and unused links, oldest first. @returns null when the environment does not exist. */
export async function listConsoleSessions(db: TypedSql, environmentId: string): Promise<ConsoleSessionRow[] | null> {
  const [environment] = await db.$queryRaw<unknown[]>`SELECT 1 AS found FROM environments WHERE id = ${environmentId}`;
  if (environment === undefined) return null;
  return db.$queryRaw<ConsoleSessionRow[]>`
    SELECT s.id, s.environment_id AS "environmentId", s.api_key_id AS "apiKeyId", s.read_only AS "readOnly", s.scopes,
      CASE WHEN s.secret_hash IS NULL THEN 'link' ELSE 'open' END AS state, s.created_at AS "createdAt",
      s.used_at AS "usedAt", s.expires_at AS "expiresAt"
    FROM console_sessions s
    WHERE s.environment_id = ${environmentId} AND ${IS_OPEN}
    ORDER BY s.id`;
}

/**
 * Ends sessions and links. For operators: takes no tenant.
 * @param which the id of one, or the environment of all.
 * @returns the ended ones, with the hexadecimal hash for the notice `consoleSessionEnded`; null for a link.
 */
export async function revokeConsoleSessions(
  db: TypedSql,
  which: { id: string } | { environmentId: string },
): Promise<{ id: string; secretHash: string | null }[]> {
  const filter = 'id' in which ? Prisma.sql`id = ${which.id}` : Prisma.sql`environment_id = ${which.environmentId}`;
  return db.$queryRaw<{ id: string; secretHash: string | null }[]>`
    DELETE FROM console_sessions WHERE ${filter} RETURNING id, encode(secret_hash, 'hex') AS "secretHash"`;
}

/** Deletes up to `limit` sessions and links that have expired. @returns their number. */
export function deleteExpiredConsoleSessions(db: TypedSql, limit: number): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.id FROM console_sessions target WHERE target.expires_at <= now() ORDER BY target.expires_at`;
  return deleteBatch(db, 'console_sessions', { rows, limit });
}
