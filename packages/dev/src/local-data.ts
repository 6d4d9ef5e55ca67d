import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readJson, root } from './bootstrap.js';

/**
 * The folder of all data of a local run. A relative DATA_DIR is relative to the repository's root, wherever npm is
 * called.
 */
export function dataDirectory(): string {
  return resolve(root, process.env['DATA_DIR'] || '.data');
}

/** The file that names the folder of the latest start. */
const LATEST = join(root, '.tools', 'data-dir');

export function rememberDataDirectory(dataDir: string, file = LATEST): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, dataDir);
}

/** The folder of a running start: DATA_DIR, or else the usual one, or else the folder of the latest start. */
export function runningDataDirectory(dataDir = dataDirectory(), file = LATEST): string {
  const isFound = process.env['DATA_DIR'] || existsSync(devFileOf(dataDir)) || !existsSync(file);
  return isFound ? dataDir : readFileSync(file, 'utf8');
}

/** The running processes and keys, for scripts and people. */
export function devFileOf(dataDir: string): string {
  return join(dataDir, 'dev.json');
}

/**
 * Writes a JSON file that only its owner can read. Replaces an earlier one atomically, so that a reader sees either the
 * old or the new content.
 */
export function writeJson(file: string, content: unknown): void {
  const beside = `${file}.${process.pid}.new`;
  writeFileSync(beside, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(beside, file);
}

export type LocalSecrets = ReturnType<typeof localSecrets>;

/**
 * The secrets of this DATA_DIR, created once and kept in secrets.json (mode 0600), because the encryption keys seal
 * data in the database. Secrets that a later version needs are added.
 */
export function localSecrets(dataDir: string) {
  const file = join(dataDir, 'secrets.json');
  const kept = (readJson(file) ?? {}) as Record<string, string>;
  const made = {
    postgresPassword: randomSecret(),
    redisPassword: randomSecret(),
    encryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    turnSecret: randomSecret(),
    turnAdminPassword: randomSecret(),
    mediaApiSecret: randomSecret(),
    mediaAdminKey: randomSecret(),
    mediaAdminSecret: randomSecret(),
  };
  const secrets: typeof made = { ...made, ...kept };
  if (Object.keys(secrets).length > Object.keys(kept).length) writeJson(file, secrets);
  return secrets;
}

const randomSecret = (): string => randomBytes(24).toString('base64url');
