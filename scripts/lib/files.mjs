import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
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

/**
 * Where a program is that can be run by its name.
 * @param {string} name
 */
export function findProgram(name) {
  // Debian installs some programs (nginx) in a folder that an ordinary user's PATH lacks.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return folders
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
