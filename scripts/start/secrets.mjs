import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readJson, writeJson } from '../lib/files.mjs';

/**
 * The secrets of this DATA_DIR, made once and kept in secrets.json (mode 0600): what is in the database was sealed
 * with them.
 * @param {string} dataDir
 * @returns {{ postgresPassword: string, redisPassword: string, encryptionKeys: string, turnSecret: string }}
 */
export function localSecrets(dataDir) {
  const file = join(dataDir, 'secrets.json');
  const kept = readJson(file);
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    redisPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    turnSecret: randomBytes(24).toString('base64url'),
    ...kept,
  };
  if (kept === undefined) writeJson(file, secrets);
  return secrets;
}
