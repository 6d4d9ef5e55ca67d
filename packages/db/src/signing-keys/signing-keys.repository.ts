import { createHash, createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { type MasterKeys, open, seal, TOKEN_TTL_SECONDS } from '@callplane/core';
import type { Database, Db, TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';

/** The public key as stored. Source: RFC 7518, section 6.2.1. */
// A type, because TypeScript does not accept an interface as a JSON object.
export type PublicJwk = { kty: 'EC'; crv: 'P-256'; x: string; y: string };

/** A key of the JWKS (RFC 7517), without the private `d`. */
export type PublishedJwk = PublicJwk & { kid: string; alg: 'ES256'; use: 'sig' };

const generate = promisify(generateKeyPair);

/** Generates an ES256 key. Its private part (PKCS#8 PEM) is sealed with its key id as the context. */
async function generateSigningKey(masterKeys: MasterKeys) {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' }) as { x: string; y: string };
  const publicJwk: PublicJwk = { kty: 'EC', crv: 'P-256', x, y };
  const id = thumbprint(publicJwk);
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { id, publicJwk, privateKeySealed: seal(masterKeys, pem, contextOf(id)) };
}

/** @throws Error when the sealed text was altered or its master key is not configured. */
function openSigningKey(masterKeys: MasterKeys, kid: string, privateKeySealed: string): KeyObject {
  return createPrivateKey(open(masterKeys, privateKeySealed, contextOf(kid)));
}

function publishedJwk(kid: string, { kty, crv, x, y }: PublicJwk): PublishedJwk {
  return { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' };
}

/** Source: RFC 7638: SHA-256 over the required members, in lexical order and without white space. */
export function thumbprint({ kty, crv, x, y }: PublicJwk): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

function contextOf(kid: string): string {
  return `signing-key:${kid}`;
}

/**
 * Reads the current signing and verification keys, in one query.
 * @throws Error when no key is active (`ensureSigningKey` creates the first), or its master key is not configured.
 */
export async function loadSigningKeys(database: Database, masterKeys: MasterKeys, now: Date) {
  const rows = await database.sql.$queryRaw<
    { id: string; status: string; publicJwk: PublicJwk; privateKeySealed: string | null }[]
  >`
    SELECT id, status, public_jwk AS "publicJwk", private_key_sealed AS "privateKeySealed" FROM signing_keys
    WHERE ${isVerifying(now)}`;
  const active = rows.find((row) => row.status === 'active');
  if (active?.privateKeySealed == null) throw new Error('no signing key is active');
  return {
    signer: { kid: active.id, privateKey: openSigningKey(masterKeys, active.id, active.privateKeySealed) },
    jwks: { keys: rows.map(({ id, publicJwk }) => publishedJwk(id, publicJwk)) },
  };
}

/** For gateways, whose role does not read private keys. */
export async function loadVerificationKeys(db: TypedSql, now: Date): Promise<PublishedJwk[]> {
  const rows = await db.$queryRaw<{ id: string; publicJwk: PublicJwk }[]>`
    SELECT id, public_jwk AS "publicJwk" FROM signing_keys WHERE ${isVerifying(now)}`;
  return rows.map(({ id, publicJwk }) => publishedJwk(id, publicJwk));
}

/** The active key, the waiting one, and retired ones that may still have valid tokens; newest first. */
const isVerifying = (now: Date) =>
  Prisma.sql`status IN ('active', 'next') OR verifies_until > ${at(now)} ORDER BY created_at DESC, id`;

/**
 * Lists all keys, newest first. One with the status `next` is published and does not sign yet, the `active` one signs, a
 * `retired` one only verifies.
 */
export function listSigningKeys(db: Db) {
  return db.signingKey.findMany({
    orderBy: [{ createdAt: 'desc' }, { id: 'asc' }],
    select: { id: true, status: true, createdAt: true, activatesAt: true, retiredAt: true, verifiesUntil: true },
  });
}

export function deleteExpiredSigningKeys(db: TypedSql, now: Date): PromiseLike<number> {
  return db.$executeRaw`DELETE FROM signing_keys WHERE status = 'retired' AND verifies_until <= ${at(now)}`;
}

/**
 * How long a retired key still verifies after the longest token lifetime, in seconds: clocks differ, and an instance
 * that has not received the change yet may sign with it a little longer.
 */
const RETIREMENT_MARGIN_SECONDS = 300;

/**
 * Creates the first signing key when none is active. The unique index lets only one of several concurrent instances
 * create it.
 * @returns whether this call created it.
 */
export async function ensureSigningKey(database: Database, masterKeys: MasterKeys, now: Date): Promise<boolean> {
  const active = await database.sql.$queryRaw<{ id: string }[]>`SELECT id FROM signing_keys WHERE status = 'active'`;
  return active.length === 0 && (await insertSigningKey(database.sql, masterKeys, 'active', now, now)) !== null;
}

/**
 * Publishes a new key, which signs after `publishSeconds`: by then every verifier must have fetched the JWKS again. At
 * most one key waits at a time.
 * @returns the key that waits; `waiting`: it belongs to an earlier rotation, and nothing was written.
 */
export async function rotateSigningKey(
  database: Database,
  masterKeys: MasterKeys,
  now: Date,
  publishSeconds: number,
): Promise<{ outcome: 'rotated' | 'waiting'; kid: string; activatesAt: Date }> {
  const activatesAt = new Date(now.getTime() + publishSeconds * 1000);
  for (;;) {
    const kid = await insertSigningKey(database.sql, masterKeys, 'next', now, activatesAt);
    if (kid !== null) return { outcome: 'rotated', kid, activatesAt };
    const [next] = await database.sql.$queryRaw<{ id: string; activatesAt: Date }[]>`
      SELECT id, activates_at AS "activatesAt" FROM signing_keys WHERE status = 'next'`;
    if (next !== undefined) return { outcome: 'waiting', kid: next.id, activatesAt: next.activatesAt };
    // The waiting key that blocked the insert became active between the two statements, so the insert can succeed now.
  }
}

/**
 * Activates the waiting key once it is due, and retires the active one. Its private part is erased; its public part
 * verifies until the last token that it signed has expired. Any number of instances may call this: one of them does it.
 * @returns the id of the key that this call activated, null when none was due.
 */
export function activateDueSigningKey(database: Database, now: Date): Promise<string | null> {
  const verifiesSeconds = TOKEN_TTL_SECONDS.max + RETIREMENT_MARGIN_SECONDS;
  return database.transaction(async (tx) => {
    // A second caller waits here for the first, and then finds no row that is still `next`.
    const [due] = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM signing_keys WHERE status = 'next' AND activates_at <= ${at(now)} FOR UPDATE`;
    if (due === undefined) return null;
    // Two statements, because only one key may be active at any moment.
    await tx.$executeRaw`
      UPDATE signing_keys SET status = 'retired', private_key_sealed = NULL, retired_at = ${at(now)},
        verifies_until = ${at(now)} + ${verifiesSeconds}::int * interval '1 second'
      WHERE status = 'active'`;
    await tx.$executeRaw`UPDATE signing_keys SET status = 'active' WHERE id = ${due.id}`;
    return due.id;
  });
}

/** Inserts a new key and returns its id; null when another key has that status. */
async function insertSigningKey(
  db: TypedSql,
  masterKeys: MasterKeys,
  status: 'active' | 'next',
  now: Date,
  activatesAt: Date,
): Promise<string | null> {
  const { id, publicJwk, privateKeySealed } = await generateSigningKey(masterKeys);
  const inserted = await db.$executeRaw`
    INSERT INTO signing_keys (id, status, public_jwk, private_key_sealed, created_at, activates_at)
    VALUES (${id}, ${status}, ${JSON.stringify(publicJwk)}::jsonb, ${privateKeySealed}, ${at(now)}, ${at(activatesAt)})
    ON CONFLICT DO NOTHING`;
  return inserted === 1 ? id : null;
}

const at = (time: Date): Prisma.Sql => Prisma.sql`${time.toISOString()}::timestamptz`;
