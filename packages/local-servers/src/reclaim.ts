import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { commandLineOf, exists, isAlive } from './process-table.js';

/** One step of stopping a process: send the signal, then wait up to `graceMs` until the process is gone. */
export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

const LOOK_EVERY_MS = 20;
const BURIED_WITHIN_MS = 5_000;

/**
 * Stops a process that an earlier run left behind: one that the pid file names, that is alive, and whose command line
 * holds `marker`. The file alone proves nothing, because process ids are reused.
 * @returns the pid of the stopped process, or undefined.
 * @throws Error if the process survives every step.
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
 * Waits until a killed process is reaped. Until its parent does that, the process keeps its id, but has no command
 * line. PostgreSQL mistakes such a process for a live predecessor and refuses to start.
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

/** Sends each signal in turn until the process is gone. SIGCONT thaws a frozen process, so that it can react. */
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
  throw new Error(`process ${pid} did not stop`);
}
