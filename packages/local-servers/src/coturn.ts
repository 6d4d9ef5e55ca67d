import { createSocket } from 'node:dgram';
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { reclaim, type StopStep } from './reclaim.js';
import { startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot } from './unprivileged.js';

export interface CoturnOptions extends ServerOptions {
  /** Holds the configuration (mode 0600), the pid file and coturn's own database. */
  dir: string;
  /** UDP and TCP. */
  listeningPort: number;
  /** The address to listen and to relay on; see hostIPv4(). Loopback cannot relay to a media server. */
  host: string;
  /** The secret that the API signs TURN credentials with (coturn's `use-auth-secret`). */
  secret: string;
  /** Range of UDP ports for relays, both ends included. */
  minPort: number;
  maxPort: number;
  realm?: string;
}

const STOP_STEPS: StopStep[] = [
  { signal: 'SIGTERM', graceMs: 3_000 },
  { signal: 'SIGKILL', graceMs: 5_000 },
];
const READY_WITHIN_MS = 10_000;

/**
 * Runs coturn's `turnserver` with time-limited credentials and nothing else: no TLS, no command-line interface, no
 * multicast. Stops the server of an earlier run on the same directory first, if one is still there.
 * `url` is its `turn:` URL over UDP.
 *
 * Its log is `<dir>/coturn.log` unless told otherwise. Throws a LocalServerError when it cannot be found or started.
 */
export async function startCoturn(options: CoturnOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const configFile = join(dir, 'turnserver.conf');
  const pidFile = join(dir, 'turn.pid');
  const left = await reclaim(pidFile, configFile, STOP_STEPS);
  if (left !== undefined) options.onNotice?.(`stopped coturn (pid ${left}), left running by an earlier start`);

  serverDirectory(dir);
  const config = [
    `listening-ip=${options.host}`,
    `relay-ip=${options.host}`,
    `listening-port=${options.listeningPort}`,
    `min-port=${options.minPort}`,
    `max-port=${options.maxPort}`,
    `realm=${options.realm ?? 'callplane.local'}`,
    'fingerprint',
    'use-auth-secret',
    `static-auth-secret=${options.secret}`,
    'no-cli',
    'no-tls',
    'no-dtls',
    'no-multicast-peers',
    // A machine without a network has no other peers than its own loopback.
    ...(options.host.startsWith('127.') ? ['allow-loopback-peers'] : []),
    'log-file=stdout',
    'simple-log',
    `pidfile=${pidFile}`,
    `userdb=${join(dir, 'turndb')}`,
  ];
  serverFile(configFile, `${config.join('\n')}\n`);
  return startServer({
    name: 'coturn',
    port: options.listeningPort,
    url: `turn:${options.host}:${options.listeningPort}?transport=udp`,
    command: withoutRoot([configFile], [dir])('turnserver', ['-c', configFile]),
    cwd: '/',
    logFile: options.logFile ?? join(dir, 'coturn.log'),
    isReady: () => answersBinding(options.host, options.listeningPort),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: STOP_STEPS,
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
    // Connected, so that a port on which nothing listens yet is reported at once.
    socket.connect(port, host, () => socket.send(request));
  });
}
