import { createServer } from 'node:net';
import { once } from 'node:events';
import { freePort } from '@callplane/local-servers';
import { Failure } from '../bootstrap.js';
import { dataDirectory } from '../local-data.js';

const API_PORT = 8080;
const SIGNALING_PORT = 8082;
const DEMO_PORT = 8083;

/**
 * The settings that the local start itself reads from the environment; all others pass through to the apps.
 * @returns the settings; an empty variable counts as not set
 */
export function readSettings(env = process.env) {
  const port = portFrom(env, 'PORT') ?? API_PORT;
  const host = env['HOST'] || '127.0.0.1';
  return {
    port,
    /** Undefined: the gateway uses port 8082 or, if that is taken, the next free one. */
    signalingPort: portFrom(env, 'SIGNALING_PORT'),
    /** Host names, besides loopback, under which browsers may open the demo page. */
    demoHosts: (env['DEMO_HOSTS'] || '').split(',').filter((name) => name !== ''),
    host,
    origin: originOf(host, port),
    dataDir: dataDirectory(),
    databaseUrl: env['DATABASE_URL'] || undefined,
    redisUrl: env['REDIS_URL'] || undefined,
    turnUrls: env['TURN_URLS'] || undefined,
    turnSecret: env['TURN_SECRET'] || undefined,
    /** Private addresses that relays may reach besides this machine's, for media servers on other machines. */
    mediaIps: (env['MEDIA_IPS'] || '').split(',').filter((address) => address !== ''),
    mediaNodes: env['MEDIA_NODES'] || undefined,
    mediaApiSecret: env['MEDIA_API_SECRET'] || undefined,
    mediaAdminKey: env['MEDIA_ADMIN_KEY'] || undefined,
    encryptionKeys: env['ENCRYPTION_KEYS'] || undefined,
    shutdownDeadlineMs: Number(env['SHUTDOWN_DEADLINE_MS'] || 10_000),
  };
}

export type Settings = ReturnType<typeof readSettings>;

/**
 * Chooses the port of the gateway. Fails here if the API or the gateway could not listen, before anything else has
 * started.
 */
export async function chooseSignalingPort(settings: Settings): Promise<number> {
  const { port, host } = settings;
  await checkPort('PORT', port, host);
  if (settings.signalingPort === port) {
    throw new Failure(`PORT and SIGNALING_PORT are both ${port}; choose different ports`);
  }
  if (settings.signalingPort !== undefined) await checkPort('SIGNALING_PORT', settings.signalingPort, host);
  // The start prints links with its ports, so that they need not be fixed ones.
  return settings.signalingPort ?? (await freePortFrom(SIGNALING_PORT, host));
}

/** Chooses the port of the demo page, right before it listens, because other programs take free ports too. */
export function chooseDemoPort({ host }: Settings): Promise<number> {
  return freePortFrom(DEMO_PORT, host);
}

async function freePortFrom(first: number, host: string): Promise<number> {
  for (let candidate = first; candidate <= 65_535; candidate++) {
    if ((await listenProblem(candidate, host)) === undefined) return candidate;
  }
  throw new Failure(`No port from ${first} on is free`);
}

/** The origin of a server for programs on this machine. */
export function originOf(host: string, port: number) {
  return `http://${clientHost(host)}:${port}`;
}

function portFrom(env: NodeJS.ProcessEnv, name: string) {
  const given = env[name] || undefined;
  if (given === undefined) return undefined;
  const port = Number(given);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new Failure(`${name} must be a number from 1 to 65535, not "${given}"`);
}

async function checkPort(name: string, port: number, host: string) {
  const problem = await listenProblem(port, host);
  if (problem === undefined) return;
  const other = port < 65_535 ? port + 1 : API_PORT;
  if (problem === 'EADDRINUSE') {
    throw new Failure(
      `Port ${port} is taken by another program. Stop it, or choose another port: ${name}=${other} npm start`,
    );
  }
  if (problem === 'EACCES') {
    throw new Failure(`Port ${port} needs root's rights. Choose another: ${name}=${API_PORT} npm start`);
  }
  throw new Failure(`Cannot listen on ${host}:${port} (${problem})`);
}

/** Why this start cannot have the port; undefined if it has it from now on. */
async function listenProblem(port: number, host: string): Promise<string | undefined> {
  if (!(await holdPort(port))) return 'EADDRINUSE';
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve((error as NodeJS.ErrnoException).code));
    server.listen({ port, host }, () => server.close(() => resolve(undefined)));
  });
}

function clientHost(host: string) {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * Holds a port against other starts, whose servers would otherwise take it between its choice and `listen()`. An abstract
 * socket (unix(7)) has one owner, and the kernel frees its name when the owner ends.
 * @returns false if another start holds the port, or this one does already
 */
async function holdPort(port: number): Promise<boolean> {
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
