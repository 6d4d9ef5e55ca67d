import { closeSync, createReadStream, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { HISTORY_FILES, type HistoryLines } from '../history.js';
import { checkAcceptedWork } from './accepted-work.js';
import { checkEvents } from './events.js';
import { faultsOf, hasSettled, numberIn, requestEvidence, textIn, type History } from './facts.js';
import { Tally, type Finding } from './finding.js';
import { checkMoves } from './moves.js';
import { checkRecordings } from './recordings.js';
import { checkRooms } from './rooms.js';

/** Lines of a history, all files together, at most: some GiB of memory. An hour of load writes about a million. */
const HISTORY_LINES_MAX = 2_000_000;
/** Of the load balancer itself, when no instance could be reached or answered. */
const OF_THE_LOAD_BALANCER = [502, 504];

/**
 * Checks the history of a run against the guarantees of docs/guarantees.md that callers and receivers can see. Knows
 * the HTTP API, the messages of calls and the bodies of events, and nothing of the implementation.
 * @returns a finding for every guarantee, in the order of the document.
 */
export async function checkHistory(folder: string): Promise<Finding[]> {
  return checkHistoryLines(await readHistory(folder));
}

export function checkHistoryLines(history: History): Finding[] {
  return [
    ...checkAcceptedWork(history),
    ...checkRooms(history),
    ...checkMoves(history),
    forwarded(history).finding(),
    ...checkEvents(history),
    ...checkRecordings(history),
    answered(history).finding(),
    running(history).finding(),
  ];
}

/** The harness looks at rows and media servers. Each forward that it has seen is a case. */
function forwarded(history: History): Tally {
  const tally = new Tally('R8', 'no feed was forwarded to another media server');
  for (const { mark, n, detail } of hasSettled(history) ? history.marks : []) {
    if (mark !== 'forwards') continue;
    for (let opened = numberIn(detail, 'opened') ?? 0; opened > 0; opened -= 1) tally.held();
    for (const says of detail['left'] as string[])
      tally.broken('Something is left although its room has ended.', { file: 'marks', n, says });
  }
  return tally;
}

function answered(history: History): Tally {
  const tally = new Tally('P1', 'no request was answered');
  const faults = faultsOf(history);
  for (const request of history.requests) {
    const { status, answer, retryAfter, startMs, endMs } = request;
    if (status === null) continue;
    const code = textIn(answer, 'error', 'code');
    if (status >= 400 && (code === null || textIn(answer, 'error', 'requestId') === null)) {
      tally.broken(`An answer ${status} has no code or no request id.`, requestEvidence(request));
      continue;
    }
    const isFault = OF_THE_LOAD_BALANCER.includes(status) && faults.overlap(startMs - faults.recoveryMs, endMs);
    const isAnnounced = code === 'UNAVAILABLE' && retryAfter !== null && (status === 503 || isFault);
    // Without an agent, a room cannot be recorded at present.
    const isRefused = code === 'RECORDING_UNAVAILABLE' && status === 503;
    const sentence = `An answer ${status} (${code}) is not one of an outage, or its Retry-After is missing.`;
    tally.case(status < 500 || isAnnounced || isRefused, sentence, requestEvidence(request));
  }
  return tally;
}

/** The harness marks each app that ends although the nemesis neither killed nor stopped it. */
function running({ marks, run }: History): Tally {
  const tally = new Tally('P2', 'the apps of a deployment are not watched');
  if (!run.hasNemesis) return tally;
  const failures = marks.filter(({ mark }) => mark === 'app failed');
  if (failures.length === 0) tally.held();
  for (const { n, detail, atMs } of failures) {
    const says = `${String(detail['app'])} at ${Math.round(atMs)} ms: ${String(detail['message'])}`;
    tally.broken(`${String(detail['app'])} failed, or ended by itself.`, { file: 'marks', n, says });
  }
  return tally;
}

/**
 * Reads a folder of histories.
 * @throws Error if a line is not JSON, is missing, or if there are too many. A last line without a line feed was cut off and is left out.
 */
async function readHistory(folder: string): Promise<History> {
  let left = HISTORY_LINES_MAX;
  const read = async <File extends keyof HistoryLines>(file: File): Promise<HistoryLines[File][]> => {
    const lines: HistoryLines[File][] = [];
    const path = join(folder, HISTORY_FILES[file]);
    if (!existsSync(path)) return lines;
    let pending: string | null = null;
    const take = (text: string): void => {
      if (left-- === 0) throw new Error(`${folder} has more than ${HISTORY_LINES_MAX} lines`);
      lines.push(lineOf<HistoryLines[File]>(path, text, lines.length));
    };
    for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
      if (pending !== null) take(pending);
      pending = text;
    }
    if (pending !== null && endsWithFeed(path)) take(pending);
    return lines;
  };
  const [run] = await read('run');
  if (run === undefined) throw new Error(`${folder} holds no history of a run`);
  return {
    run,
    requests: await read('requests'),
    frames: await read('frames'),
    deliveries: await read('deliveries'),
    media: await read('media'),
    nemesis: await read('nemesis'),
    marks: await read('marks'),
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
