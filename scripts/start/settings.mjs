import { createServer } from 'node:net';
import { Failure } from '../lib/failure.mjs';
import { dataDirectory } from '../lib/files.mjs';

const API_PORT = 8080;
const SIGNALING_PORT = 8082;

/**
 * What the local start itself reads from the environment; everything else passes through to the apps.
 * @returns what was asked for; an empty variable counts as not set
 */
export function readSettings(env = process.env) {
  const port = portFrom(env, 'PORT') ?? API_PORT;
  const host = env['HOST'] || '127.0.0.1';
  return {
    port,
    /** Undefined: SIGNALING_PORT or, when that is taken, the next free one. */
    signalingPort: portFrom(env, 'SIGNALING_PORT'),
    host,
    /** Where a program on this machine reaches the API. */
    origin: originOf(host, port),
    dataDir: dataDirectory(),
    databaseUrl: env['DATABASE_URL'] || undefined,
    redisUrl: env['REDIS_URL'] || undefined,
    /** Somebody else's relay: then none is started here. */
    turnUrls: env['TURN_URLS'] || undefined,
    turnSecret: env['TURN_SECRET'] || undefined,
    /** Somebody else's media servers: then none is started here. */
    mediaNodes: env['MEDIA_NODES'] || undefined,
    mediaApiSecret: env['MEDIA_API_SECRET'] || undefined,
    mediaAdminKey: env['MEDIA_ADMIN_KEY'] || undefined,
    encryptionKeys: env['ENCRYPTION_KEYS'] || undefined,
    shutdownDeadlineMs: Number(env['SHUTDOWN_DEADLINE_MS'] || 10_000),
  };
}

/** @typedef {ReturnType<typeof readSettings>} Settings */

/**
 * Fails when API or gateway could not listen; that this is so must not first show after everything else has started.
 * @param {Settings} settings
 * @returns {Promise<{ signalingPort: number }>} where the gateway is to listen
 */
export async function choosePorts({ port, signalingPort, host }) {
  await checkPort('PORT', port, host);
  if (signalingPort !== undefined) {
    if (signalingPort === port) throw new Failure(`PORT and SIGNALING_PORT are both ${port}; give them one each`);
    await checkPort('SIGNALING_PORT', signalingPort, host);
    return { signalingPort };
  }
  // Its port stands in the link that is printed: nobody has to know it beforehand.
  for (let candidate = SIGNALING_PORT; candidate <= 65_535; candidate++) {
    if (candidate !== port && (await listenProblem(candidate, host)) === undefined) return { signalingPort: candidate };
  }
  throw new Failure(`No port from ${SIGNALING_PORT} on is free for the signaling gateway`);
}

/**
 * Where a program on this machine reaches what listens there.
 * @param {string} host
 * @param {number} port
 */
export function originOf(host, port) {
  return `http://${clientHost(host)}:${port}`;
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} name
 */
function portFrom(env, name) {
  const given = env[name] || undefined;
  if (given === undefined) return undefined;
  const port = Number(given);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new Failure(`${name} must be a number from 1 to 65535, not "${given}"`);
}

/**
 * @param {string} name
 * @param {number} port
 * @param {string} host
 */
async function checkPort(name, port, host) {
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
  throw new Failure(`Nothing can listen on ${host}:${port} (${problem})`);
}

/**
 * @param {number} port
 * @param {string} host
 * @returns {Promise<string | undefined>} the error's code
 */
function listenProblem(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(/** @type {NodeJS.ErrnoException} */ (error).code));
    server.listen({ port, host }, () => server.close(() => resolve(undefined)));
  });
}

/** @param {string} host */
function clientHost(host) {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
