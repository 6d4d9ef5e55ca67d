import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Whether a process with this id exists. A zombie does not count. */
export function isAlive(pid: number): boolean {
  return (statusFields(pid)?.state ?? 'Z') !== 'Z';
}

/** Whether a process with this id exists, including a zombie. */
export function exists(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** The command line of a live process with its arguments separated by spaces, or '' if the process is gone. */
export function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((candidate) => statusFields(candidate)?.parent === pid);
}

function statusFields(pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0], parent: Number(fields[1]) };
  } catch {
    return undefined;
  }
}
