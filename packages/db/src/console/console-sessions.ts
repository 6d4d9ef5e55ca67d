import {
  CONSOLE_LINK_SECONDS,
  CONSOLE_SESSION_IDLE_SECONDS,
  CONSOLE_SESSIONS_MAX,
  type ConsoleSession,
  type Caller,
  type Scope,
  type Tenant,
} from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import type { ConsoleSession as StoredSession, Prisma } from '../generated/client.js';
import { environmentExists } from '../tenants/tenants.repository.js';

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
export type ConsoleSessionRow = Omit<StoredSession, 'codeHash' | 'secretHash' | 'lifetimeSeconds' | 'scopes'> & {
  state: 'open' | 'link';
  scopes: Scope[];
};

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

/**
 * The links of an environment that work and the sessions that have not ended, oldest first. A session ends with its key.
 */
async function findOpen(db: Db, environmentId: string, now: Date) {
  const idleSince = new Date(now.getTime() - CONSOLE_SESSION_IDLE_SECONDS * 1000);
  const sessions = await db.consoleSession.findMany({
    where: { environmentId, expiresAt: { gt: now }, OR: [{ secretHash: null }, { usedAt: { gt: idleSince } }] },
    orderBy: { id: 'asc' },
  });
  const endedKeys = await db.apiKey.findMany({
    where: { environmentId, OR: [{ revokedAt: { not: null } }, { expiresAt: { lte: now } }] },
    select: { id: true },
  });
  const ended = new Set(endedKeys.map(({ id }) => id));
  return sessions.filter(({ apiKeyId }) => apiKeyId === null || !ended.has(apiKeyId));
}

/** Opens a session. The hash is that of the value of its cookie. */
export function openConsoleSession(
  database: Database,
  session: NewConsoleSession,
  secretHash: Uint8Array,
  now: Date,
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  return insert(database, session, { secretHash: new Uint8Array(secretHash), seconds: session.lifetimeSeconds }, now);
}

/** Makes a link. The hash is that of its code. */
export function createConsoleLink(
  database: Database,
  session: NewConsoleSession,
  codeHash: Uint8Array,
  now: Date,
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  return insert(database, session, { codeHash: new Uint8Array(codeHash), seconds: CONSOLE_LINK_SECONDS }, now);
}

function insert(
  database: Database,
  { scopes, ...session }: NewConsoleSession,
  stored: Pick<Prisma.ConsoleSessionCreateManyInput, 'secretHash' | 'codeHash'> & { seconds: number },
  now: Date,
): Promise<'opened' | 'environment_not_found' | 'limit'> {
  const { seconds, ...hashes } = stored;
  return database.prisma.$transaction(async (tx) => {
    // Sign-ins of an environment go one at a time, so that their number cannot exceed the limit. Other work with the
    // environment takes weaker locks.
    const [environment] = await tx.$queryRaw<unknown[]>`
      SELECT 1 AS found FROM environments WHERE id = ${session.environmentId} FOR NO KEY UPDATE`;
    if (environment === undefined) return 'environment_not_found';
    const open = await findOpen(tx, session.environmentId, now);
    if (open.length >= CONSOLE_SESSIONS_MAX) return 'limit';
    const expiresAt = new Date(now.getTime() + seconds * 1000);
    const times = { createdAt: now, usedAt: now, expiresAt };
    await tx.consoleSession.createMany({ data: [{ ...session, ...hashes, ...times, scopes: [...scopes] }] });
    return 'opened';
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
      LEAST(s.expires_at, k.expires_at,
        s.used_at + ${CONSOLE_SESSION_IDLE_SECONDS}::int * interval '1 second') AS "expiresAt", k.revoked_at AS "revokedAt",
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
export async function touchConsoleSession(db: Db, { environmentId }: Tenant, id: string, now: Date): Promise<void> {
  await db.consoleSession.updateMany({ where: { id, environmentId }, data: { usedAt: now } });
}

/** Lists open sessions and unused links, oldest first. @returns null when the environment does not exist. */
export async function listConsoleSessions(
  db: Db,
  environmentId: string,
  now: Date,
): Promise<ConsoleSessionRow[] | null> {
  if (!(await environmentExists(db, environmentId))) return null;
  const rows = await findOpen(db, environmentId, now);
  return rows.map(({ secretHash, codeHash: _, lifetimeSeconds: __, ...row }) => ({
    ...row,
    state: secretHash === null ? 'link' : 'open',
    scopes: row.scopes as Scope[],
  }));
}

/**
 * Ends sessions and links. Repeating it changes nothing.
 * @param which one, or all of an environment.
 * @returns the ended ones, with the hexadecimal hash for the notice `consoleSessionEnded`; null for a link.
 */
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

/** Deletes sessions and links that have expired. @returns their number. */
export async function deleteExpiredConsoleSessions(db: Db, now: Date): Promise<number> {
  return (await db.consoleSession.deleteMany({ where: { expiresAt: { lte: now } } })).count;
}
