import { closeSync, createReadStream, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { HISTORY_FILES, HISTORY_VERSION } from '../history.js';
import type { History } from './facts.js';

/** Lines of a history, all files together, at most: some GiB of memory. An hour of load writes about a million. */
const HISTORY_LINES_MAX = 2_000_000;

/**
 * Reads a folder of histories.
 * @throws Error if a line is not JSON, is missing, or if there are too many. A last line without a line feed was cut off and is left out.
 */
export async function readHistory(folder: string): Promise<History> {
  let left = HISTORY_LINES_MAX;
  const read = async <T extends { n: number }>(file: string): Promise<T[]> => {
    const lines: T[] = [];
    const path = join(folder, file);
    if (!existsSync(path)) return lines;
    let pending: string | null = null;
    const take = (text: string): void => {
      if (left-- === 0) throw new Error(`${folder} has more than ${HISTORY_LINES_MAX} lines`);
      lines.push(lineOf<T>(path, text, lines.length));
    };
    for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
      if (pending !== null) take(pending);
      pending = text;
    }
    if (pending !== null && endsWithFeed(path)) take(pending);
    return lines;
  };
  const [run] = await read<History['run']>(HISTORY_FILES.run);
  if (run === undefined) throw new Error(`${folder} holds no history of a run`);
  // Of the type, the file may have any.
  if ((run.version as number) !== HISTORY_VERSION) {
    throw new Error(`${folder} has version ${String(run.version)}, and this checker reads ${HISTORY_VERSION}`);
  }
  return {
    run,
    requests: await read(HISTORY_FILES.requests),
    frames: await read(HISTORY_FILES.frames),
    deliveries: await read(HISTORY_FILES.deliveries),
    media: await read(HISTORY_FILES.media),
    nemesis: await read(HISTORY_FILES.nemesis),
    marks: await read(HISTORY_FILES.marks),
  };
}

/** Whether the last byte of a file, which is not empty, is a line feed. */
function endsWithFeed(path: string): boolean {
  const fd = openSync(path, 'r');
  try {
    const last = Buffer.alloc(1);
    readSync(fd, last, 0, 1, fstatSync(fd).size - 1);
    return last[0] === 0x0a;
  } finally {
    closeSync(fd);
  }
}

function lineOf<T extends { n: number }>(path: string, text: string, at: number): T {
  let line: T;
  try {
    line = JSON.parse(text) as T;
  } catch (error) {
    throw new Error(`${path}: line ${at + 1} is not JSON`, { cause: error });
  }
  if (line.n !== at) throw new Error(`${path}: line ${at + 1} has n ${line.n}, so a line is missing`);
  return line;
}
