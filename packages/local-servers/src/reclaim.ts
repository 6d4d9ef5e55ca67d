import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { commandLineOf, exists, isAlive } from './process-table.js';

/** One step of stopping a process: send the signal, then wait that long for it to be gone. */
export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

const LOOK_EVERY_MS = 20;
const BURIED_WITHIN_MS = 5_000;

/**
 * Stops a process that an earlier run left behind, when its pid file names a live process whose command line holds
 * `marker` (ids are reused: the file alone proves nothing). Returns the pid that was stopped, or undefined.
 * Throws when the process survives every step.
 */
export async function reclaim(pidFile: string, marker: string, steps: StopStep[]): Promise<number | undefined> {
  const pid = pidIn(pidFile);
  if (pid === undefined) return undefined;
  await untilBuried(pid);
  if (!isAlive(pid) || !commandLineOf(pid).includes(marker)) return undefined;
  await stopProcess(pid, steps);
  return pid;
}

/**
 * A process that was just killed still has its id, and no command line any more, until its parent has taken note of
 * its end. PostgreSQL takes such a one for a live predecessor and refuses to start.
 */
async function untilBuried(pid: number): Promise<void> {
  const until = performance.now() + BURIED_WITHIN_MS;
  while (exists(pid) && commandLineOf(pid) === '' && performance.now() < until) await delay(LOOK_EVERY_MS);
}

/** The pid on the first line of a file, if there is one. */
export function pidIn(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Sends each signal in turn until the process is gone; a frozen process is thawed so that it can obey. */
export async function stopProcess(pid: number, steps: StopStep[]): Promise<void> {
  for (const { signal, graceMs } of steps) {
    try {
      process.kill(pid, signal);
      process.kill(pid, 'SIGCONT');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw error;
    }
    const until = performance.now() + graceMs;
    while (isAlive(pid) && performance.now() < until) await delay(LOOK_EVERY_MS);
    if (!isAlive(pid)) return;
  }
  throw new Error(`process ${pid} does not stop`);
}
