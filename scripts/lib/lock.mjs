import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * What tells a process from a later one that was given the same id: its start time and the boot it belongs to.
 * An empty string where the system does not say, and for a process that is gone.
 * @param {number} pid
 */
export function processStamp(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return '';
    return `${fields[19]}@${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;
  } catch {
    return '';
  }
}

/**
 * Whether the very process that this was recorded of is still there.
 * @param {{ pid: number, stamp: string }} recorded
 */
export function isSameProcess({ pid, stamp }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPERM') return false;
  }
  return processStamp(pid) === stamp;
}

/**
 * Takes a lock file for this process, also from an owner that is gone. The kernel has no lock that Node can reach,
 * so the file names its owner: id and start time.
 * @param {string} file
 * @returns {{ release: () => void, tookOver: boolean } | { owner: number }} the lock, or the process that holds it
 */
export function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, JSON.stringify({ pid: process.pid, stamp: processStamp(process.pid) }), { mode: 0o600 });
  let tookOver = false;
  try {
    for (;;) {
      try {
        // Linking is atomic and fails when the file is there, whose content is complete from its first moment on.
        linkSync(mine, file);
        return { release: () => rmSync(file, { force: true }), tookOver };
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
      }
      const owner = ownerIn(file);
      if (owner !== undefined && isSameProcess(owner)) return { owner: owner.pid };
      // Moved aside first: of two that find the same stale lock, the second must not remove the first one's new lock.
      const aside = `${mine}.stale`;
      try {
        renameSync(file, aside);
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
        continue;
      }
      const moved = ownerIn(aside);
      if (moved !== undefined && isSameProcess(moved)) {
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
