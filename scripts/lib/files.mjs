import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Failure } from './failure.mjs';

/** The root of the repository. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/**
 * The content of a JSON file, or undefined if the file does not exist.
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
