import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const hasProc = existsSync('/proc/self/stat');

/** Whether a process with this id exists (a zombie, which only waits for its parent, does not count). */
export function isAlive(pid: number): boolean {
  return exists(pid) && statusFields(pid)?.state !== 'Z';
}

/** Whether there is a process with this id, one that has ended and that its parent has not noticed yet included. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The command line of a live process with its arguments separated by spaces, or '' when it is gone. */
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

function statusFields(pid: number): { state: string; parent: number } | undefined {
  if (!hasProc) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', parent: Number(fields[1]) };
  } catch {
    return undefined;
  }
}
