import { TOKEN_TTL_SECONDS, type MasterKeys } from '@callplane/core';
import type { Database } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { generateSigningKey } from './signing-key.js';

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
  const active = await database.prisma.signingKey.findFirst({ where: { status: 'active' }, select: { id: true } });
  return active === null && insertSigningKey(database, masterKeys, 'active', now, now).then((kid) => kid !== null);
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
    const kid = await insertSigningKey(database, masterKeys, 'next', now, activatesAt);
    if (kid !== null) return { outcome: 'rotated', kid, activatesAt };
    const next = await database.prisma.signingKey.findFirst({
      where: { status: 'next' },
      select: { id: true, activatesAt: true },
    });
    if (next !== null) return { outcome: 'waiting', kid: next.id, activatesAt: next.activatesAt };
    // The waiting key that blocked the insert became active between the two statements, so the insert can succeed now.
  }
}

/**
 * Activates the waiting key once it is due, and retires the active one. Its private part is erased; its public part
 * verifies until the last token that it signed has expired. Any number of instances may call this: one of them does it.
 * @returns the id of the key that this call activated, null when none was due.
 */
export function activateDueSigningKey(database: Database, now: Date): Promise<string | null> {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  const verifiesSeconds = TOKEN_TTL_SECONDS.max + RETIREMENT_MARGIN_SECONDS;
  return database.transaction(async (tx) => {
    // A second caller waits here for the first, and then finds no row that is still `next`.
    const [due] = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM signing_keys WHERE status = 'next' AND activates_at <= ${at} FOR UPDATE`;
    if (due === undefined) return null;
    // Two statements, because only one key may be active at any moment.
    await tx.$executeRaw`
      UPDATE signing_keys SET status = 'retired', private_key_sealed = NULL, retired_at = ${at},
        verifies_until = ${at} + ${verifiesSeconds}::int * interval '1 second'
      WHERE status = 'active'`;
    await tx.$executeRaw`UPDATE signing_keys SET status = 'active' WHERE id = ${due.id}`;
    return due.id;
  });
}

/** Inserts a new key and returns its id; null when another key has that status. */
async function insertSigningKey(
  database: Database,
  masterKeys: MasterKeys,
  status: 'active' | 'next',
  now: Date,
  activatesAt: Date,
): Promise<string | null> {
  const key = await generateSigningKey(masterKeys);
  const { count } = await database.prisma.signingKey.createMany({
    data: [{ ...key, status, createdAt: now, activatesAt }],
    skipDuplicates: true,
  });
  return count === 1 ? key.id : null;
}
