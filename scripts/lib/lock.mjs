import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 200;
/** Another build of a built clone takes less. */
const SAY_AFTER_MS = 2_000;

/**
 * Takes a lock for this process. Node has no access to the kernel's file locks. An abstract socket (unix(7)) works as a
 * lock, too: a name has one owner, and the kernel frees it when the owner ends, however it ends.
 * @param {string} file names the lock; contains the id of its latest owner
 * @returns {Promise<{ release: () => void } | { owner: number }>} the lock, or the process that holds it
 */
export async function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const name = createHash('sha256').update(file).digest('hex');
  const server = createServer();
  try {
    await once(server.listen(`\0callplane-${name}`), 'listening');
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EADDRINUSE') throw error;
    return { owner: Number(readFileSync(file, 'utf8')) };
  }
  server.unref();
  writeFileSync(file, String(process.pid), { mode: 0o600 });
  return { release: () => server.close() };
}

/**
 * Waits until this process has the lock.
 * @param {string} file
 * @param {{ say: (line: string) => void, signal: AbortSignal, what: string }} context `what` names the purpose of the
 * lock
 * @returns {Promise<() => void>} releases the lock
 */
export async function waitForLock(file, { say, signal, what }) {
  const began = performance.now();
  let said = false;
  for (;;) {
    const lock = await takeLock(file);
    if ('release' in lock) return lock.release;
    if (!said && performance.now() - began > SAY_AFTER_MS) {
      say(`  Waiting for another ${what} (process ${lock.owner})…`);
      said = true;
    }
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
