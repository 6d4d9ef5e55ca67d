import { TOKEN_TTL_SECONDS, type MasterKeys } from '@callplane/core';
import type { Database } from '../client/database.js';
import { generateSigningKey } from './signing-key.js';

/**
 * How long a retired key verifies beyond the longest token, in seconds: clocks differ, and an instance that has not heard
 * of the change may sign with it a little longer.
 */
const RETIREMENT_MARGIN_SECONDS = 300;

/** The key that waits to sign. */
export interface WaitingSigningKey {
  kid: string;
  activatesAt: Date;
}

/** `waiting`: an earlier rotation is still under way, nothing was done. */
export type Rotation = { outcome: 'rotated' | 'waiting' } & WaitingSigningKey;

/**
 * Makes the first signing key when none is active. Instances that start at once agree on one, by the unique index.
 * @returns whether this call made it.
 */
export async function ensureSigningKey(database: Database, masterKeys: MasterKeys, now: Date): Promise<boolean> {
  const active = await database.prisma.signingKey.findFirst({ where: { status: 'active' }, select: { id: true } });
  return active === null && insertSigningKey(database, masterKeys, 'active', now, now).then((kid) => kid !== null);
}

/**
 * Publishes a new key, which signs from `publishSeconds` on: by then every verifier has to have fetched the JWKS again.
 * At most one key waits at a time.
 */
export async function rotateSigningKey(
  database: Database,
  masterKeys: MasterKeys,
  now: Date,
  publishSeconds: number,
): Promise<Rotation> {
  const activatesAt = new Date(now.getTime() + publishSeconds * 1000);
  for (;;) {
    const kid = await insertSigningKey(database, masterKeys, 'next', now, activatesAt);
    if (kid !== null) return { outcome: 'rotated', kid, activatesAt };
    const next = await database.prisma.signingKey.findFirst({
      where: { status: 'next' },
      select: { id: true, activatesAt: true },
    });
    if (next !== null) return { outcome: 'waiting', kid: next.id, activatesAt: next.activatesAt };
    // The key that was in the way became active between the two statements: there is room for ours now.
  }
}

/**
 * Lets the waiting key sign once its time has come; the active one retires: its private part is erased, its public part
 * verifies until the last token that it signed has expired. Any number of instances may try: one of them does it.
 * @returns the id of the key that this call activated, null when none was due.
 */
export function activateDueSigningKey(database: Database, now: Date): Promise<string | null> {
  return database.transaction(async (tx) => {
    // Whoever comes second waits here for the first, and then finds that the row is `next` no more.
    const [due] = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM signing_keys WHERE status = 'next' AND activates_at <= ${now} FOR UPDATE`;
    if (due === undefined) return null;
    const verifiesSeconds = TOKEN_TTL_SECONDS.max + RETIREMENT_MARGIN_SECONDS;
    await tx.signingKey.updateMany({
      where: { status: 'active' },
      data: {
        status: 'retired',
        privateKeySealed: null,
        retiredAt: now,
        verifiesUntil: new Date(now.getTime() + verifiesSeconds * 1000),
      },
    });
    await tx.signingKey.update({ where: { id: due.id }, data: { status: 'active' }, select: { id: true } });
    return due.id;
  });
}

/** The new key's id; null when another one holds that status. */
async function insertSigningKey(
  database: Database,
  masterKeys: MasterKeys,
  status: 'active' | 'next',
  now: Date,
  activatesAt: Date,
): Promise<string | null> {
  const { kid, publicJwk, privateKeySealed } = await generateSigningKey(masterKeys);
  const { count } = await database.prisma.signingKey.createMany({
    data: [{ id: kid, status, publicJwk, privateKeySealed, createdAt: now, activatesAt }],
    skipDuplicates: true,
  });
  return count === 1 ? kid : null;
}
