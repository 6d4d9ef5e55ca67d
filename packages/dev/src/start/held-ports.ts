import { once } from 'node:events';
import { createServer } from 'node:net';
import { freePort } from '@callplane/local-servers';

/**
 * Holds a port against other starts, whose servers would otherwise take it between its choice and `listen()`. An abstract
 * socket (unix(7)) has one owner, and the kernel frees its name when the owner ends.
 * @returns false if another start holds the port, or this one does already
 */
export async function holdPort(port: number): Promise<boolean> {
  const holder = createServer();
  try {
    await once(holder.listen(`\0callplane-port-${port}`), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return false;
  }
  holder.unref();
  return true;
}

/** A free port that no other start chooses. */
export async function heldPort(host?: string): Promise<number> {
  for (;;) {
    const port = await freePort(host);
    if (await holdPort(port)) return port;
  }
}
