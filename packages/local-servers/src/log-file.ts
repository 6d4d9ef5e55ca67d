import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const KEPT_BYTES_MAX = 5 * 1024 * 1024;
/** Of a file that is written to, before another one begins. */
const WRITTEN_BYTES_MAX = 50 * 1024 * 1024;

/**
 * Opens a log file for appending (mode 0600) and returns its descriptor. Renames a file of more than 5 MiB to `<file>.1`
 * first.
 */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  if (sizeOf(file) > KEPT_BYTES_MAX) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

export function lineWriter(file: string): (line: string) => void {
  let log = openLog(file);
  let bytes = sizeOf(file);
  return (line) => {
    // A full disk or a deleted folder must not end the supervisor of the apps.
    try {
      bytes += writeSync(log, `${line}\n`);
      if (bytes < WRITTEN_BYTES_MAX) return;
      closeSync(log);
      log = openLog(file);
      bytes = 0;
    } catch {
      return;
    }
  };
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
