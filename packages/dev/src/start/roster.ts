import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSameProcess, processStamp, type RecordedProcess, type Watchdog } from '@callplane/local-servers';
import { readJson } from '../bootstrap.js';
import { writeJson } from '../local-data.js';

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
}

const SHOWN_FIRST = ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus'];

export interface Roster {
  /** Records a new process, in place of an earlier one of that name. */
  spawned(name: string, pid: number): void;
  pids(): number[];
  publish(facts: Published): void;
  withdraw(): void;
  close(): void;
}

/**
 * The running processes, recorded in two files that are kept up to date. run.json lets the next start clean up after a
 * start that was killed. dev.json exists from `publish` until `withdraw`, for people and scripts. A dead process stays
 * listed until its successor has an id.
 */
export function openRoster(dataDir: string, watchdog: Watchdog): Roster {
  const runFile = join(dataDir, 'run.json');
  const devFile = devFileOf(dataDir);
  const present = new Map<string, RecordedProcess>();
  let published: Published | undefined;
  const write = () => {
    const processes = [...present]
      .sort(([a], [b]) => rank(a) - rank(b))
      .map(([name, { pid, stamp }]) => ({ name, pid, stamp }));
    writeJson(runFile, { processes });
    if (published === undefined) return;
    writeJson(devFile, { ...published, processes: processes.map(({ name, pid }) => ({ name, pid })) });
  };
  return {
    spawned(name: string, pid: number) {
      const before = present.get(name);
      if (before !== undefined) watchdog.unwatch(before.pid);
      // On SIGTERM, PostgreSQL waits until every client has disconnected; on SIGINT it disconnects them.
      watchdog.watch(pid, name === 'postgres' ? 'INT' : 'TERM');
      present.set(name, { pid, stamp: processStamp(pid) });
      write();
    },
    pids: () => [...present.values()].filter(isSameProcess).map(({ pid }) => pid),
    publish(facts: Published) {
      published = facts;
      write();
    },
    withdraw() {
      published = undefined;
      rmSync(devFile, { force: true });
    },
    close() {
      watchdog.release();
      rmSync(runFile, { force: true });
    },
  };
}

export function devFileOf(dataDir: string): string {
  return join(dataDir, 'dev.json');
}

/**
 * Stops processes that an earlier start left running, which happens if the start and its watchdog were killed together.
 */
export async function clearEarlierRun(dataDir: string, say: (line: string) => void) {
  rmSync(devFileOf(dataDir), { force: true });
  const run = readJson(join(dataDir, 'run.json')) as { processes: (RecordedProcess & { name: string })[] } | undefined;
  const recorded = run?.processes ?? [];
  for (const { name, pid } of recorded.filter(isSameProcess)) {
    say(`  Stopping ${name} (process ${pid}), left running by an earlier start`);
    signal(pid, name === 'postgres' ? 'SIGINT' : 'SIGTERM');
    signal(pid, 'SIGCONT');
  }
  const until = performance.now() + 12_000;
  while (recorded.some(isSameProcess) && performance.now() < until) await delay(20);
  for (const { pid } of recorded.filter(isSameProcess)) signal(pid, 'SIGKILL');
  while (recorded.some(isSameProcess) && performance.now() < until + 5_000) await delay(20);
}

function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function rank(name: string) {
  const place = SHOWN_FIRST.indexOf(name);
  // Other apps come after the first two and before the servers.
  return place === -1 ? 1.5 : place;
}
