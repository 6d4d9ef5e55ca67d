import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Failure } from './failure.mjs';

/** The repository's top. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Where a local run keeps everything; a relative DATA_DIR counts from the repository's top, wherever npm was called. */
export const dataDirectory = () => resolve(root, process.env['DATA_DIR'] || '.data');

/**
 * The content of a JSON file, or undefined when it is not there.
 * @param {string} file
 * @returns {any}
 */
export function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === 'ENOENT') return undefined;
    if (code === 'EACCES') {
      throw new Failure(
        `${file} belongs to another user, who has started here before. Start as that user, or choose another DATA_DIR`,
      );
    }
    throw new Failure(`${file} cannot be read: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Writes a JSON file that only its owner can read, and replaces an earlier one in one step: a reader sees either.
 * @param {string} file
 * @param {unknown} content
 */
export function writeJson(file, content) {
  const beside = `${file}.${process.pid}.new`;
  writeFileSync(beside, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(beside, file);
}
