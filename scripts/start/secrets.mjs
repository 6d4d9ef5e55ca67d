import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readJson, writeJson } from '../lib/files.mjs';

/**
 * The secrets of this DATA_DIR, made once and kept in secrets.json (mode 0600): what is in the database was sealed
 * with them. Those that came with a later version are added.
 * @param {string} dataDir
 * @returns {{ postgresPassword: string, redisPassword: string, encryptionKeys: string, turnSecret: string,
 *   mediaApiSecret: string, mediaAdminKey: string, mediaAdminSecret: string }}
 */
export function localSecrets(dataDir) {
  const file = join(dataDir, 'secrets.json');
  const kept = readJson(file);
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    redisPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    turnSecret: randomBytes(24).toString('base64url'),
    mediaApiSecret: randomBytes(24).toString('base64url'),
    mediaAdminKey: randomBytes(24).toString('base64url'),
    mediaAdminSecret: randomBytes(24).toString('base64url'),
    ...kept,
  };
  if (Object.keys(secrets).length > Object.keys(kept ?? {}).length) writeJson(file, secrets);
  return secrets;
}
