import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSameProcess, processStamp, type RecordedProcess } from '@callplane/local-servers';
import { readJson } from '../bootstrap.js';
import { devFileOf, writeJson } from '../local-data.js';

/** The content of dev.json, besides the processes. */
interface Published {
  baseUrl: string;
  projectId: string;
  environmentId: string;
  secretKey: string;
  publishableKey: string;
  databaseUrl: string;
  redisUrl: string;
  signalingUrl: string;
  demoUrl: string;
  /** Where each app shows its metrics, by its name. */
  metricsUrls: Readonly<Record<string, string>>;
}

const GONE_WITHIN_MS = 10_000;
const SHOWN_FIRST = ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus'];

export interface RunRecord {
  /** Records a new process, in place of an earlier one of that name. */
  spawned(name: string, pid: number): void;
  /** Kills all recorded processes. */
  kill(): void;
  publish(facts: Published): void;
  /** Removes dev.json. */
  withdraw(): void;
  /** Removes both files. */
  close(): void;
}

/**
 * The running processes, recorded in two files that are kept up to date. run.json lets the next start clean up where the
 * kernel does not. dev.json exists from `publish` until `withdraw`, for people and scripts. A dead process stays listed
 * until its successor has an id.
 */
export function openRecord(dataDir: string): RunRecord {
  const runFile = join(dataDir, 'run.json');
  const present = new Map<string, RecordedProcess>();
  let published: Published | undefined;
  const write = () => {
    const processes = [...present]
      .sort(([a], [b]) => rank(a) - rank(b))
      .map(([name, { pid, stamp }]) => ({ name, pid, stamp }));
    writeJson(runFile, { processes });
    if (published === undefined) return;
    writeJson(devFileOf(dataDir), { ...published, processes: processes.map(({ name, pid }) => ({ name, pid })) });
  };
  const withdraw = () => {
    published = undefined;
    rmSync(devFileOf(dataDir), { force: true });
  };
  return {
    spawned(name, pid) {
      present.set(name, { pid, stamp: processStamp(pid) });
      write();
    },
    kill() {
      for (const each of present.values()) if (isSameProcess(each)) kill(each.pid);
    },
    publish(facts) {
      published = facts;
      write();
    },
    withdraw,
    close() {
      withdraw();
      rmSync(runFile, { force: true });
    },
  };
}

/** Kills what a killed start has left running. All of it survives a kill: PostgreSQL recovers from its log. */
export async function clearEarlierRun(dataDir: string, say: (line: string) => void): Promise<void> {
  rmSync(devFileOf(dataDir), { force: true });
  const run = readJson(join(dataDir, 'run.json')) as { processes: (RecordedProcess & { name: string })[] } | undefined;
  const left = (run?.processes ?? []).filter(isSameProcess);
  for (const { name, pid } of left) {
    say(`  Ending ${name} (process ${pid}), left running by an earlier start`);
    kill(pid);
  }
  const until = performance.now() + GONE_WITHIN_MS;
  while (left.some(isSameProcess) && performance.now() < until) await delay(20);
}

/** SIGKILL to a process that may have ended. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function rank(name: string) {
  const place = SHOWN_FIRST.indexOf(name);
  // Other apps come after the first two and before the servers.
  return place === -1 ? 1.5 : place;
}
