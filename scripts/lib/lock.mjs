import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';

/**
 * Takes a lock for this process. Node has no access to the kernel's file locks. An abstract socket (unix(7)) is one, too:
 * a name has one owner, and the kernel frees it when the owner ends, however it ends.
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
