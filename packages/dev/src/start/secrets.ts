import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readJson } from '../bootstrap.js';
import { writeJson } from '../local-data.js';

export interface LocalSecrets {
  postgresPassword: string;
  redisPassword: string;
  encryptionKeys: string;
  turnSecret: string;
  turnAdminPassword: string;
  mediaApiSecret: string;
  mediaAdminKey: string;
  mediaAdminSecret: string;
}

/**
 * The secrets of this DATA_DIR, created once and kept in secrets.json (mode 0600), because the encryption keys seal
 * data in the database. Secrets that a later version needs are added.
 */
export function localSecrets(dataDir: string): LocalSecrets {
  const file = join(dataDir, 'secrets.json');
  const kept = readJson(file) as LocalSecrets | undefined;
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    redisPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    turnSecret: randomBytes(24).toString('base64url'),
    turnAdminPassword: randomBytes(24).toString('base64url'),
    mediaApiSecret: randomBytes(24).toString('base64url'),
    mediaAdminKey: randomBytes(24).toString('base64url'),
    mediaAdminSecret: randomBytes(24).toString('base64url'),
    ...kept,
  };
  if (Object.keys(secrets).length > Object.keys(kept ?? {}).length) writeJson(file, secrets);
  return secrets;
}
