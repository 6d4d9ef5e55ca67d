import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Distinguishes a process from a later one with the same id: its command line and the id of the boot. An empty string
 * if the system does not provide them, and for a process that is gone.
 * @param {number} pid
 */
function stampOf(pid) {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return command === '' ? '' : `${command}@${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;
  } catch {
    return '';
  }
}

/**
 * Whether the process that took a lock still runs. This process does not hold a lock that it only tries to take: an
 * owner with its id is an earlier process, for example of a container that has been started again.
 * @param {{ pid: number, stamp: string }} owner
 */
function holds({ pid, stamp }) {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPERM') return false;
  }
  return stampOf(pid) === stamp;
}

/**
 * Takes a lock file for this process, also from an owner that is gone. Node has no access to the kernel's file locks,
 * so the file names its owner: id and command line.
 * @param {string} file
 * @returns {{ release: () => void, tookOver: boolean } | { owner: number }} the lock, or the process that holds it
 */
export function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, JSON.stringify({ pid: process.pid, stamp: stampOf(process.pid) }), { mode: 0o600 });
  let tookOver = false;
  try {
    for (;;) {
      try {
        // Linking is atomic, fails if the file exists, and never exposes a half-written file.
        linkSync(mine, file);
        return { release: () => rmSync(file, { force: true }), tookOver };
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
      }
      const owner = ownerIn(file);
      if (owner !== undefined && holds(owner)) return { owner: owner.pid };
      // Moves the stale lock aside before it removes it: of two processes that find the same stale lock, the second
      // must not remove the first one's new lock.
      const aside = `${mine}.stale`;
      try {
        renameSync(file, aside);
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
        continue;
      }
      const moved = ownerIn(aside);
      if (moved !== undefined && holds(moved)) {
        renameSync(aside, file);
        return { owner: moved.pid };
      }
      rmSync(aside, { force: true });
      tookOver = true;
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/**
 * @param {string} file
 * @returns {{ pid: number, stamp: string } | undefined}
 */
function ownerIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
