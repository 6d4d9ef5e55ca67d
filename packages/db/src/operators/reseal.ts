import { open, seal, type MasterKeys } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

export interface Resealed {
  webhookSecrets: number;
  signingKeys: number;
  /** Stored responses of idempotency keys that an older master key still seals; they expire within 24 hours. */
  answersLeft: number;
}

const BATCH = 500;

/**
 * Seals every secret at rest that another master key seals with the first one, so that the others can be removed. Safe
 * to repeat and to interrupt: an update changes a row only while it holds the value that was read.
 * @throws Error when a row's master key is not configured.
 */
export async function resealSecrets(db: TypedSql, masterKeys: MasterKeys): Promise<Resealed> {
  const prefix = `s1.${masterKeys.sealWith}.`;
  const again = (sealed: string, context: string): string =>
    seal(masterKeys, open(masterKeys, sealed, context), context);
  let webhookSecrets = 0;
  for (;;) {
    const rows = await db.$queryRaw<{ endpointId: string; version: number; sealed: string }[]>`
      SELECT endpoint_id AS "endpointId", version, secret_sealed AS sealed FROM webhook_secrets
      WHERE NOT starts_with(secret_sealed, ${prefix}) LIMIT ${BATCH}`;
    if (rows.length === 0) break;
    for (const { endpointId, version, sealed } of rows) {
      webhookSecrets += await db.$executeRaw`
        UPDATE webhook_secrets SET secret_sealed = ${again(sealed, `webhook-secret:${endpointId}:${version}`)}
        WHERE endpoint_id = ${endpointId} AND version = ${version} AND secret_sealed = ${sealed}`;
    }
  }
  let signingKeys = 0;
  const keys = await db.$queryRaw<{ id: string; sealed: string }[]>`
    SELECT id, private_key_sealed AS sealed FROM signing_keys WHERE NOT starts_with(private_key_sealed, ${prefix})`;
  for (const { id, sealed } of keys) {
    signingKeys += await db.$executeRaw`
      UPDATE signing_keys SET private_key_sealed = ${again(sealed, `signing-key:${id}`)}
      WHERE id = ${id} AND private_key_sealed = ${sealed}`;
  }
  const [{ left }] = await db.$queryRaw<[{ left: number }]>`
    SELECT count(*)::int AS left FROM idempotency_records
    WHERE starts_with(made, 's1.') AND NOT starts_with(made, ${prefix})`;
  return { webhookSecrets, signingKeys, answersLeft: left };
}
