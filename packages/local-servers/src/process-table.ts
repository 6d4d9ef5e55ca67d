import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const hasProc = existsSync('/proc/self/stat');

/** Whether a process with this id exists. A zombie does not count. */
export function isAlive(pid: number): boolean {
  return exists(pid) && statusFields(pid)?.state !== 'Z';
}

/** Whether a process with this id exists, including a zombie. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The command line of a live process with its arguments separated by spaces, or '' if the process is gone. */
export function commandLineOf(pid: number): string {
  if (!hasProc)
    return spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim();
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Ids of the direct children of a process. */
export function childrenOf(pid: number): number[] {
  if (!hasProc) {
    const listed = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout;
    return listed.split('\n').filter(Boolean).map(Number);
  }
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((candidate) => statusFields(candidate)?.parent === pid);
}

/** Whether this process may read from its terminal. True where the system does not tell. */
export function isInForeground(): boolean {
  const fields = statusFields(process.pid);
  return fields === undefined || fields.group === fields.foregroundGroup;
}

/** A process as it is recorded: `stamp` tells it apart from a later one with the same id. */
export interface RecordedProcess {
  pid: number;
  stamp: string;
}

/** The start time of a process, with the id of the boot if there is one. An empty string for a process that is gone. */
export function processStamp(pid: number): string {
  if (!hasProc) return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim();
  const status = statusFields(pid);
  if (status === undefined || status.state === 'Z') return '';
  return `${status.startedAtTicks}@${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;
}

/** Whether the recorded process still exists, and its id has not been reused. */
export function isSameProcess({ pid, stamp }: RecordedProcess): boolean {
  return exists(pid) && processStamp(pid) === stamp;
}

interface StatusFields {
  state: string;
  parent: number;
  group: number;
  /** Of its terminal. */
  foregroundGroup: number;
  startedAtTicks: string;
}

function statusFields(pid: number): StatusFields | undefined {
  if (!hasProc) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return {
      state: fields[0] ?? '',
      parent: Number(fields[1]),
      group: Number(fields[2]),
      foregroundGroup: Number(fields[5]),
      startedAtTicks: fields[19] ?? '',
    };
  } catch {
    return undefined;
  }
}
