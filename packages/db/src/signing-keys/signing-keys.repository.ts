import type { KeyObject } from 'node:crypto';
import type { MasterKeys } from '@callplane/core';
import type { Database, Db } from '../client/database.js';
import { openSigningKey, publishedJwk, type PublicJwk, type PublishedJwk } from './signing-key.js';

export const SIGNING_KEY_STATUSES = ['next', 'active', 'retired'] as const;
/** `next` is published and does not sign yet, `active` signs, `retired` still verifies. */
export type SigningKeyStatus = (typeof SIGNING_KEY_STATUSES)[number];

/** A key as an operator may see it. */
export interface SigningKeyRow {
  id: string;
  status: SigningKeyStatus;
  createdAt: Date;
  activatesAt: Date;
  retiredAt: Date | null;
  verifiesUntil: Date | null;
}

export interface SigningKeys {
  /** What signs tokens now. */
  signer: { kid: string; privateKey: KeyObject };
  /** What verifies them: the active key, one that is about to follow, and those whose tokens may still be alive. */
  jwks: { keys: PublishedJwk[] };
}

/**
 * Reads the keys that sign and verify at this moment, in one query.
 * @throws Error when no key is active (`ensureSigningKey` makes the first), or its master key is not configured.
 */
export async function loadSigningKeys(database: Database, masterKeys: MasterKeys, now: Date): Promise<SigningKeys> {
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

/** The public keys that verify at this moment, for those who never sign: the same that the JWKS names. */
export async function loadVerificationKeys(db: Db, now: Date): Promise<PublishedJwk[]> {
  const rows = await db.signingKey.findMany({ where: verifying(now), omit: { privateKeySealed: true } });
  return rows.map((row) => publishedJwk(row.id, row.publicJwk as PublicJwk));
}

/** The active key, one that is about to follow, and those whose tokens may still be alive. */
function verifying(now: Date) {
  return { OR: [{ status: { in: ['active', 'next'] } }, { verifiesUntil: { gt: now } }] };
}

/** All of them, newest first. */
export async function listSigningKeys(db: Db): Promise<SigningKeyRow[]> {
  const rows = await db.signingKey.findMany({
    orderBy: [{ createdAt: 'desc' }, { id: 'asc' }],
    omit: { publicJwk: true, privateKeySealed: true },
  });
  return rows as SigningKeyRow[];
}

/** Removes retired keys that verify nothing any more; returns how many there were. */
export async function deleteExpiredSigningKeys(db: Db, now: Date): Promise<number> {
  const { count } = await db.signingKey.deleteMany({ where: { status: 'retired', verifiesUntil: { lte: now } } });
  return count;
}
