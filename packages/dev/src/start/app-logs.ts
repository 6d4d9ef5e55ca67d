import { closeSync, copyFileSync, fstatSync, openSync, readSync, rmSync, statSync, truncateSync } from 'node:fs';

const LOOK_EVERY_MS = 200;
const PIECE_BYTES = 64 * 1024;
const KEPT_BYTES_MAX = 50 * 1024 * 1024;

/**
 * Shows new lines of the apps' log files, each after its app's name. Copies a file of more than 50 MiB to `<file>.1`
 * and empties it.
 * @returns stops it, after showing the lines that are present
 */
export function followLogs(logs: { name: string; file: string }[], show: (line: string) => void): () => void {
  const width = Math.max(...logs.map(({ name }) => name.length));
  const followed = logs.map(({ name, file }) => ({ name, file, offset: sizeOf(file), rest: '' }));
  const look = () => {
    for (const log of followed) {
      // A full disk or a deleted file must not end the supervisor of the apps.
      try {
        for (const line of newLines(log)) show(`${log.name.padEnd(width)} | ${line}`);
        if (log.offset > KEPT_BYTES_MAX) empty(log);
      } catch {
        continue;
      }
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return () => {
    clearInterval(timer);
    look();
  };
}

function empty(log: { file: string; offset: number }) {
  try {
    copyFileSync(log.file, `${log.file}.1`);
  } catch {
    // The disk is full: free space matters more than old lines.
    rmSync(`${log.file}.1`, { force: true });
  }
  truncateSync(log.file);
  log.offset = 0;
}

function newLines(log: { file: string; offset: number; rest: string }) {
  let text = log.rest;
  const descriptor = openSync(log.file, 'r');
  try {
    // A file that has become shorter was replaced when its app restarted.
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

function sizeOf(file: string) {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
