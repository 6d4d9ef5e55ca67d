import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';

// Below Linux's range for outgoing connections (32768 and up). An outgoing connection could otherwise take a port
// between the check and the server's listen(), or during a restart of the server.
const LOWEST_PORT = 20_000;
const HIGHEST_PORT = 29_999;

/** Ports that this process has returned and whose servers may not listen yet. */
const handedOut = new Set<number>();

/**
 * A TCP port between 20000 and 29999 on which nothing listens.
 * @throws Error if a hundred tries find none.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT + 1);
    if (handedOut.has(port) || !(await isPortFree(port, host))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(`no free port between ${LOWEST_PORT} and ${HIGHEST_PORT} on ${host}`);
}

/** Whether a TCP server could listen on this port now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * The host's first IPv4 address that is not loopback, or 127.0.0.1 if there is none. Janus never uses loopback for
 * media and coturn cannot relay to it. So media servers, relays and local browsers all use this address.
 */
export function hostIPv4(): string {
  for (const addresses of Object.values(networkInterfaces())) {
    for (const address of addresses ?? []) {
      if (address.family === 'IPv4' && !address.internal) return address.address;
    }
  }
  return '127.0.0.1';
}
