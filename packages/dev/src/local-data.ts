import { renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { root } from './bootstrap.js';

/**
 * The folder of all data of a local run. A relative DATA_DIR is relative to the repository's root, wherever npm is
 * called.
 */
export function dataDirectory(): string {
  return resolve(root, process.env['DATA_DIR'] || '.data');
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
