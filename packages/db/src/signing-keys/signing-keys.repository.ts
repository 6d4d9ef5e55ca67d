import type { MasterKeys } from '@callplane/core';
import type { Database, Db } from '../client/database.js';
import { openSigningKey, publishedJwk, type PublicJwk, type PublishedJwk } from './signing-key.js';

/**
 * Reads the current signing and verification keys, in one query.
 * @throws Error when no key is active (`ensureSigningKey` creates the first), or its master key is not configured.
 */
export async function loadSigningKeys(database: Database, masterKeys: MasterKeys, now: Date) {
  const rows = await database.prisma.signingKey.findMany({
    where: verifying(now),
    orderBy: [{ createdAt: 'desc' }, { id: 'asc' }],
  });
  const active = rows.find((row) => row.status === 'active');
  if (active?.privateKeySealed == null) throw new Error('no signing key is active');
  return {
    signer: { kid: active.id, privateKey: openSigningKey(masterKeys, active.id, active.privateKeySealed) },
    jwks: { keys: rows.map((row) => publishedJwk(row.id, row.publicJwk as PublicJwk)) },
  };
}

export async function loadVerificationKeys(db: Db, now: Date): Promise<PublishedJwk[]> {
  const rows = await db.signingKey.findMany({ where: verifying(now), select: { id: true, publicJwk: true } });
  return rows.map((row) => publishedJwk(row.id, row.publicJwk as PublicJwk));
}

/** The active key, the waiting one, and retired ones whose tokens may still be valid. */
function verifying(now: Date) {
  return { OR: [{ status: { in: ['active', 'next'] } }, { verifiesUntil: { gt: now } }] };
}

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

export async function deleteExpiredSigningKeys(db: Db, now: Date): Promise<number> {
  const { count } = await db.signingKey.deleteMany({ where: { status: 'retired', verifiesUntil: { lte: now } } });
  return count;
}
