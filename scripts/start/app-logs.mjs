import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';

const LOOK_EVERY_MS = 200;
const PIECE_BYTES = 64 * 1024;
const KEPT_BYTES_MAX = 50 * 1024 * 1024;

/**
 * Shows what apps write to their log files from now on, each line behind its app's name. A file that grows beyond
 * 50 MiB is set aside as `<file>.1`.
 * @param {{ name: string, file: string }[]} logs
 * @param {(line: string) => void} show
 * @returns {() => void} stops it, after what is there now
 */
export function followLogs(logs, show) {
  const width = Math.max(...logs.map(({ name }) => name.length));
  const followed = logs.map(({ name, file }) => ({ name, file, offset: sizeOf(file), rest: '' }));
  const look = () => {
    for (const log of followed) {
      for (const line of newLines(log)) show(`${log.name.padEnd(width)} | ${line}`);
      if (log.offset > KEPT_BYTES_MAX) {
        copyFileSync(log.file, `${log.file}.1`);
        truncateSync(log.file);
        log.offset = 0;
      }
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return () => {
    clearInterval(timer);
    look();
  };
}

/** @param {{ file: string, offset: number, rest: string }} log */
function newLines(log) {
  let text = log.rest;
  const descriptor = openSync(log.file, 'r');
  try {
    // A file that is shorter than before was replaced when its app started again.
    if (fstatSync(descriptor).size < log.offset) log.offset = 0;
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let read = PIECE_BYTES; read === PIECE_BYTES;) {
      read = readSync(descriptor, piece, 0, PIECE_BYTES, log.offset);
      log.offset += read;
      text += piece.toString('utf8', 0, read);
    }
  } finally {
    closeSync(descriptor);
  }
  const lines = text.split('\n');
  log.rest = lines.pop() ?? '';
  return lines;
}

/** @param {string} file */
function sizeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
