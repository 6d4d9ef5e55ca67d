import { mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

const KEPT_BYTES_MAX = 5 * 1024 * 1024;

/**
 * Opens a log file for appending (mode 0600) and returns its descriptor, for use as a child's output. A child that
 * writes to a file neither blocks on a slow terminal nor dies of a closed pipe.
 * Renames a file of more than 5 MiB to `<file>.1` first.
 */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  if (sizeOf(file) > KEPT_BYTES_MAX) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

/** The last lines of a log file, counted from a byte offset; '' if there are none. */
export function tailOf(file: string, fromByte = 0, lines = 20): string {
  try {
    const text = readFileSync(file).subarray(fromByte).toString('utf8').trimEnd();
    return text.split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}

export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
