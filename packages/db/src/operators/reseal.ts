import { headerContext, mapHeaders, open, seal, type MasterKeys } from '@callplane/core';
import type { Db } from '../client/database.js';

const BATCH = 500;

/**
 * Seals every secret at rest that another master key seals with the first one, so that the others can be removed. Safe
 * to repeat and to interrupt: an update changes a row only while it holds the value that was read.
 * @returns the numbers of secrets, and of stored responses of idempotency keys that another key still seals: they expire
 *   within 24 hours.
 * @throws Error when a row's master key is not configured.
 */
export async function resealSecrets(db: Db, masterKeys: MasterKeys) {
  const isOther = { not: { startsWith: `s1.${masterKeys.sealWith}.` } };
  const again = (sealed: string, context: string): string =>
    seal(masterKeys, open(masterKeys, sealed, context), context);
  let webhookSecrets = 0;
  for (;;) {
    const secrets = await db.webhookSecret.findMany({ where: { secretSealed: isOther }, take: BATCH });
    if (secrets.length === 0) break;
    for (const { endpointId, version, secretSealed } of secrets) {
      const { count } = await db.webhookSecret.updateMany({
        where: { endpointId, version, secretSealed },
        data: { secretSealed: again(secretSealed, `webhook-secret:${endpointId}:${version}`) },
      });
      webhookSecrets += count;
    }
  }
  webhookSecrets += await resealHeaders(db, masterKeys.sealWith, again);
  let signingKeys = 0;
  for (const { id, privateKeySealed } of await db.signingKey.findMany({ where: { privateKeySealed: isOther } })) {
    if (privateKeySealed === null) continue;
    const { count } = await db.signingKey.updateMany({
      where: { id, privateKeySealed },
      data: { privateKeySealed: again(privateKeySealed, `signing-key:${id}`) },
    });
    signingKeys += count;
  }
  const answersLeft = await db.idempotencyRecord.count({ where: { made: { startsWith: 's1.', ...isOther } } });
  return { webhookSecrets, signingKeys, answersLeft };
}

/** @returns the number of endpoints whose headers were sealed again. */
async function resealHeaders(db: Db, sealWith: string, again: (sealed: string, context: string) => string) {
  let resealed = 0;
  const withHeaders = { NOT: { headers: { equals: {} } } };
  for (const { id, headers } of await db.webhookEndpoint.findMany({
    where: withHeaders,
    select: { id: true, headers: true },
  })) {
    const sealed = headers as Record<string, string>;
    if (Object.values(sealed).every((value) => value.startsWith(`s1.${sealWith}.`))) continue;
    const { count } = await db.webhookEndpoint.updateMany({
      where: { id, headers: { equals: sealed } },
      data: { headers: mapHeaders(sealed, (value, name) => again(value, headerContext(id, name))) },
    });
    resealed += count;
  }
  return resealed;
}
