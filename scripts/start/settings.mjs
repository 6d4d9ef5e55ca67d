import { createServer } from 'node:net';
import { Failure } from '../lib/failure.mjs';
import { dataDirectory } from '../lib/files.mjs';

/**
 * What the local start itself reads from the environment; everything else passes through to the apps.
 * @returns what was asked for; an empty variable counts as not set
 */
export function readSettings(env = process.env) {
  const port = Number(env['PORT'] || 8080);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new Failure(`PORT must be a number from 1 to 65535, not "${env['PORT']}"`);
  }
  const host = env['HOST'] || '127.0.0.1';
  return {
    port,
    host,
    /** Where a program on this machine reaches the API. */
    origin: `http://${clientHost(host)}:${port}`,
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
 * Fails when the API could not listen; that this is so must not first show after everything else has started.
 * @param {Settings} settings
 */
export async function checkPort({ port, host }) {
  /** @type {string | undefined} */
  const problem = await new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(/** @type {NodeJS.ErrnoException} */ (error).code));
    server.listen({ port, host }, () => server.close(() => resolve(undefined)));
  });
  if (problem === undefined) return;
  const other = port < 65_535 ? port + 1 : 8080;
  if (problem === 'EADDRINUSE') {
    throw new Failure(
      `Port ${port} is taken by another program. Stop it, or choose another port: PORT=${other} npm start`,
    );
  }
  if (problem === 'EACCES') throw new Failure(`Port ${port} needs root's rights. Choose another: PORT=8080 npm start`);
  throw new Failure(`Nothing can listen on ${host}:${port} (${problem})`);
}

/** @param {string} host */
function clientHost(host) {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
