import { spawnSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** A command ready for `spawn(file, args, options)`. */
export interface Command {
  file: string;
  args: string[];
  options: { uid?: number; gid?: number };
}

/** Turns a program and its arguments into a command that does not run as root. */
export type Wrap = (file: string, args: string[]) => Command;

/** Of util-linux, which every Debian has. */
const SETPRIV = '/usr/bin/setpriv';

const isRoot = process.getuid?.() === 0;
let nobodyIds: { uid: number; gid: number } | undefined;

/**
 * Wraps servers to run without root's rights: unchanged for an ordinary user, as `nobody` for root (PostgreSQL refuses
 * to run as root at all).
 *
 * The server must be able to read the files `reads` and to reach the directories `enters`. If `nobody` cannot (a clone
 * under /root, mode 0700, or made with umask 077), the server gets one capability that lets it look and read past
 * directory permissions. Two points are not obvious (capabilities(7), access(2)):
 * - the capability has to be ambient, or the first exec of an unprivileged user drops it;
 * - `access()`, with which PostgreSQL checks its own binaries, ignores capabilities of users other than root, unless
 *   the securebit `no_setuid_fixup` is set.
 * CAP_DAC_READ_SEARCH is enough; containers often lack it and have CAP_DAC_OVERRIDE instead.
 */
export function withoutRoot(reads: string[], enters: string[]): Wrap {
  if (!isRoot) return (file, args) => ({ file, args, options: {} });
  const ids = nobody();
  if (reachable(ids, reads, enters)) return (file, args) => ({ file, args, options: ids });
  const capability = readCapability();
  if (capability === undefined || spawnSync(SETPRIV, ['--version']).status !== 0) {
    throw new Error(
      `the user "nobody" cannot reach ${[...reads, ...enters].join(', ')}, and there is no way here to let it ` +
        '(setpriv and CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE): put the clone and DATA_DIR in a place that every user can enter',
    );
  }
  const flags = [
    `--reuid=${ids.uid}`,
    `--regid=${ids.gid}`,
    '--clear-groups',
    '--securebits=+no_setuid_fixup,+no_setuid_fixup_locked,+noroot',
    `--inh-caps=-all,+${capability}`,
    `--ambient-caps=-all,+${capability}`,
    `--bounding-set=-all,+${capability}`,
  ];
  return (file, args) => ({ file: SETPRIV, args: [...flags, file, ...args], options: {} });
}

/**
 * Creates a directory (mode 0700) that belongs to the user that servers run as. For a directory of another user, as
 * after a copy, root changes the owner; other users get an error that names the cause.
 */
export function serverDirectory(directory: string): void {
  mkdirSync(dirname(directory), { recursive: true });
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
  const owner = statSync(directory).uid;
  if (isRoot) {
    if (owner !== nobody().uid) handOver(directory, nobody());
  } else if (owner !== process.getuid?.()) {
    throw new Error(
      `${directory} belongs to another user (uid ${owner}): it was created by a start as root. ` +
        'Start as that user again, or choose another DATA_DIR.',
    );
  }
}

/** Writes a file (mode 0600) that only the user that servers run as can read. */
export function serverFile(file: string, content: string): void {
  writeFileSync(file, content, { mode: 0o600 });
  if (isRoot) chownSync(file, nobody().uid, nobody().gid);
}

function handOver(path: string, ids: { uid: number; gid: number }): void {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return;
  if (entry.isDirectory()) for (const name of readdirSync(path)) handOver(join(path, name), ids);
  chownSync(path, ids.uid, ids.gid);
}

function nobody(): { uid: number; gid: number } {
  nobodyIds ??= (() => {
    const [uid, gid] = ['-u', '-g'].map((flag) => {
      const found = spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' });
      if (found.status !== 0) throw new Error('there is no user "nobody" to run servers as');
      return Number(found.stdout.trim());
    });
    return { uid: uid ?? Number.NaN, gid: gid ?? Number.NaN };
  })();
  return nobodyIds;
}

/** Runs the checks as that user: a walk over mode bits would miss access lists and mounts. */
function reachable(ids: { uid: number; gid: number }, reads: string[], enters: string[]): boolean {
  const tests = [
    ...reads.map((_, i) => `test -r "$${i + 1}"`),
    ...enters.map((_, i) => `test -x "$${reads.length + i + 1}"`),
  ];
  const check = spawnSync('/bin/sh', ['-c', tests.join(' && '), 'sh', ...reads, ...enters], { ...ids, cwd: '/' });
  return check.status === 0;
}

function readCapability(): 'dac_read_search' | 'dac_override' | undefined {
  try {
    const bounding = BigInt(
      `0x${/^CapBnd:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`,
    );
    const [dacOverride, dacReadSearch] = [1n << 1n, 1n << 2n];
    if ((bounding & dacReadSearch) !== 0n) return 'dac_read_search';
    if ((bounding & dacOverride) !== 0n) return 'dac_override';
  } catch {
    // No /proc: not Linux, so no capabilities either.
  }
  return undefined;
}

let canBind: boolean | undefined;

/**
 * Makes the kernel send a signal to the command's process when this one has ended, for whatever reason. Only Linux does
 * that, for children of the main thread. Elsewhere the command stays as it is.
 */
export function bound(command: Command, signal: 'KILL' | 'TERM' = 'KILL'): Command {
  canBind ??= spawnSync(SETPRIV, ['--pdeathsig', 'KILL', 'true']).status === 0;
  if (!canBind) return command;
  const { file, args, options } = command;
  // A change of the user would clear the signal. If setpriv makes the change, the same call sets the signal after it.
  return { file: SETPRIV, args: ['--pdeathsig', signal, ...(file === SETPRIV ? args : [file, ...args])], options };
}
