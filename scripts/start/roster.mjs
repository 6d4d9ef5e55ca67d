import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readJson, writeJson } from '../lib/files.mjs';
import { isSameProcess, processStamp } from '../lib/lock.mjs';

/** @typedef {{ baseUrl: string, projectId: string, environmentId: string, secretKey: string, publishableKey: string,
 *   databaseUrl: string, redisUrl: string, signalingUrl: string, demoUrl: string }} Published */

const SHOWN_FIRST = ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus'];

/**
 * Who runs at present, in two files that are always true: run.json, for the next start to clear up after one that was
 * killed, and dev.json (from `publish` until `close`), for people and scripts. A process that died stays listed until
 * its successor has an id.
 * @param {string} dataDir
 * @param {import('@callplane/local-servers').Watchdog} watchdog
 */
export function openRoster(dataDir, watchdog) {
  const runFile = join(dataDir, 'run.json');
  const devFile = devFileOf(dataDir);
  /** @type {Map<string, { pid: number, stamp: string }>} */
  const present = new Map();
  /** @type {Published | undefined} */
  let published;
  const write = () => {
    const processes = [...present]
      .sort(([a], [b]) => rank(a) - rank(b))
      .map(([name, { pid, stamp }]) => ({ name, pid, stamp }));
    writeJson(runFile, { processes });
    if (published === undefined) return;
    writeJson(devFile, { ...published, processes: processes.map(({ name, pid }) => ({ name, pid })) });
  };
  return {
    /**
     * @param {string} name
     * @param {number} pid
     */
    spawned(name, pid) {
      const before = present.get(name);
      if (before !== undefined) watchdog.unwatch(before.pid);
      // PostgreSQL takes SIGTERM for "wait until every client has gone", and SIGINT for "now".
      watchdog.watch(pid, name === 'postgres' ? 'INT' : 'TERM');
      present.set(name, { pid, stamp: processStamp(pid) });
      write();
    },
    pids: () => [...present.values()].filter(isSameProcess).map(({ pid }) => pid),
    /** @param {Published} facts */
    publish(facts) {
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

/** @param {string} dataDir */
export const devFileOf = (dataDir) => join(dataDir, 'dev.json');

/**
 * Stops what an earlier start has left running, which happens when it and its watchdog were killed together.
 * @param {string} dataDir
 * @param {(line: string) => void} say
 */
export async function clearEarlierRun(dataDir, say) {
  rmSync(devFileOf(dataDir), { force: true });
  /** @type {{ name: string, pid: number, stamp: string }[]} */
  const recorded = readJson(join(dataDir, 'run.json'))?.processes ?? [];
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

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
  }
}

/** @param {string} name */
function rank(name) {
  const place = SHOWN_FIRST.indexOf(name);
  // Apps that come later stand behind the first two and before the servers.
  return place === -1 ? 1.5 : place;
}
