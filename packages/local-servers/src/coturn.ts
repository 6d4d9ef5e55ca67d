import { createSocket } from 'node:dgram';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot } from './unprivileged.js';

export interface CoturnOptions extends ServerOptions {
  /** Holds the configuration (mode 0600), the pid file and coturn's own database. */
  dir: string;
  listeningPort: number;
  /** The address to listen and to relay on; see hostIPv4(). Loopback cannot relay to a media server. */
  host: string;
  /** The secret that the API signs TURN credentials with (coturn's `use-auth-secret`). */
  secret: string;
  /** Range of UDP ports for relays, both ends included. */
  minPort: number;
  maxPort: number;
  /** TCP port of the administration interface, on loopback. */
  adminPort: number;
  adminPassword: string;
  /** Private addresses of media servers, which relays may reach. Default: `host` alone. */
  mediaAddresses?: readonly string[];
  /** Maximum number of allocations per credential. Default: the value in the policy file. */
  userQuota?: number;
  moreRelayAddresses?: readonly string[];
}

/** The policy that containers use too. The lines appended below override those in it. */
const POLICY_FILE = join(import.meta.dirname, '../../../infra/coturn/turnserver.conf');

/**
 * Runs coturn's `turnserver` with the policy of infra/coturn/turnserver.conf. `url` is the `turn:` URL over UDP.
 *
 * `logFile` defaults to `<dir>/coturn.log`. Throws a LocalServerError if the program is missing or does not start.
 */
export async function startCoturn(options: CoturnOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const configFile = join(dir, 'turnserver.conf');
  const pidFile = join(dir, 'turn.pid');
  serverDirectory(dir);
  const config = [
    readFileSync(POLICY_FILE, 'utf8'),
    ...[options.host, ...(options.moreRelayAddresses ?? [])].map((address) => `relay-ip=${address}`),
    `listening-ip=${options.host}`,
    `listening-port=${options.listeningPort}`,
    `min-port=${options.minPort}`,
    `max-port=${options.maxPort}`,
    `total-quota=${options.maxPort - options.minPort + 1}`,
    ...(options.userQuota === undefined ? [] : [`user-quota=${options.userQuota}`]),
    `static-auth-secret=${options.secret}`,
    `cli-port=${options.adminPort}`,
    `cli-password=${options.adminPassword}`,
    ...(options.mediaAddresses ?? [options.host]).map((address) => `allowed-peer-ip=${address}`),
    // On a machine without a network, its own loopback holds the only peers.
    ...(options.host.startsWith('127.') ? ['allow-loopback-peers'] : []),
    `pidfile=${pidFile}`,
    `userdb=${join(dir, 'turndb')}`,
  ];
  serverFile(configFile, `${config.join('\n')}\n`);
  return startServer({
    name: 'coturn',
    port: options.listeningPort,
    url: `turn:${options.host}:${options.listeningPort}?transport=udp`,
    command: withoutRoot([configFile], [dir])('turnserver', ['-c', configFile]),
    logFile: options.logFile ?? join(dir, 'coturn.log'),
    isReady: () => answersBinding(options.host, options.listeningPort),
    onSpawn: options.onSpawn,
  });
}

/** Sends a STUN binding request (RFC 8489, section 5) and waits up to 200 ms for its success response. */
function answersBinding(host: string, port: number): Promise<boolean> {
  const request = Buffer.concat([Buffer.from('000100002112a442', 'hex'), randomBytes(12)]);
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const finish = (ready: boolean) => {
      clearTimeout(timer);
      socket.close();
      resolve(ready);
    };
    const timer = setTimeout(() => finish(false), 200);
    socket.once('error', () => finish(false));
    socket.once('message', (answer) => finish(answer.readUInt16BE(0) === 0x0101));
    // A connected socket reports a closed port at once.
    socket.connect(port, host, () => socket.send(request));
  });
}
