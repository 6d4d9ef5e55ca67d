import { join } from 'node:path';
import { keepRunning } from './keep-running.mjs';

const RELAY_PORTS = 200;
/** Janus takes one for each peer connection, of which a participant has two. */
const MEDIA_PORTS = 400;

/**
 * Starts those servers that nobody has brought along, all at once.
 *
 * @param {object} context
 * @param {import('./settings.mjs').Settings} context.settings
 * @param {ReturnType<typeof import('./secrets.mjs').localSecrets>} context.secrets
 * @param {ReturnType<typeof import('./ports.mjs').portBook>} context.ports
 * @param {ReturnType<typeof import('./roster.mjs').openRoster>} context.roster
 * @param {typeof import('@callplane/local-servers')} context.servers
 * @param {(line: string) => void} context.say
 * @param {boolean} context.hasCoturn
 * @param {boolean} context.hasJanus
 * @param {AbortSignal} context.stopSignal
 * @param {(stop: () => Promise<void>) => void} context.onStarted is given what stops each one
 * @returns {Promise<{ databaseUrl: string, redisUrl: string, turn: Record<string, string>, media: Record<string, string> }>}
 */
export async function startServers({
  settings,
  secrets,
  ports,
  roster,
  servers,
  say,
  hasCoturn,
  hasJanus,
  stopSignal,
  onStarted,
}) {
  const { dataDir } = settings;
  /** @param {string} name */
  const common = (name) => ({
    logFile: join(dataDir, 'logs', `${name}.log`),
    onNotice: (/** @type {string} */ message) => say(`  ${message}`),
    onSpawn: (/** @type {number} */ pid) => roster.spawned(name, pid),
  });
  /**
   * @template {import('@callplane/local-servers').LocalServer} S
   * @param {string} name
   * @param {() => Promise<S>} begin
   */
  const start = async (name, begin) => {
    const { first, stop } = await keepRunning({ name, begin, say, stopSignal });
    onStarted(stop);
    return first;
  };

  const postgres = async () => {
    const port = await ports.portOf('postgres');
    const options = { dataDir: join(dataDir, 'postgres'), port, password: secrets.postgresPassword, durable: true };
    return (await start('postgres', () => servers.startPostgres({ ...options, ...common('postgres') }))).url;
  };
  const redis = async () => {
    const options = { dir: join(dataDir, 'redis'), port: await ports.portOf('redis'), password: secrets.redisPassword };
    return (await start('redis', () => servers.startRedis({ ...options, ...common('redis') }))).url;
  };
  const coturn = async () => {
    const host = servers.hostIPv4();
    const listeningPort = await ports.portOf('coturn', host);
    const secret = settings.turnSecret ?? secrets.turnSecret;
    const minPort = await ports.portOf('relays', host);
    const relays = { minPort, maxPort: minPort + RELAY_PORTS - 1 };
    const options = { dir: join(dataDir, 'coturn'), listeningPort, host, secret, ...relays };
    await start('coturn', () => servers.startCoturn({ ...options, ...common('coturn') }));
    const address = `${host}:${listeningPort}`;
    return {
      STUN_URLS: process.env['STUN_URLS'] || `stun:${address}`,
      TURN_URLS: `turn:${address}?transport=udp,turn:${address}?transport=tcp`,
      TURN_SECRET: secret,
    };
  };

  const janus = async () => {
    const host = servers.hostIPv4();
    if (host.startsWith('127.')) {
      // Janus never uses loopback for media: with one it would start, and publishing would wait for ever.
      say('  This machine has no network address but loopback, over which Janus cannot send media: none is started');
      return {};
    }
    const wsPort = await ports.portOf('janus');
    const rtpPortMin = await ports.portOf('media', host);
    const apiSecret = settings.mediaApiSecret ?? secrets.mediaApiSecret;
    const adminKey = settings.mediaAdminKey ?? secrets.mediaAdminKey;
    const options = {
      ...{ dir: join(dataDir, 'janus'), host, wsPort, rtpPortMin, rtpPortMax: rtpPortMin + MEDIA_PORTS - 1 },
      ...{ apiSecret, adminKey, adminSecret: secrets.mediaAdminSecret },
    };
    const { url } = await start('janus', () => servers.startJanus({ ...options, ...common('janus') }));
    return { MEDIA_NODES: `local=${url}`, MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey };
  };

  // Each of them is waited for even when another fails: what runs by then must be known to be stopped.
  const [database, queue, turn, media] = await Promise.allSettled([
    settings.databaseUrl ?? postgres(),
    settings.redisUrl ?? redis(),
    hasCoturn && settings.turnUrls === undefined ? coturn() : {},
    hasJanus && settings.mediaNodes === undefined ? janus() : {},
  ]);
  return {
    databaseUrl: valueOf(database),
    redisUrl: valueOf(queue),
    turn: /** @type {any} */ (valueOf(turn)),
    media: /** @type {any} */ (valueOf(media)),
  };
}

/**
 * @template T
 * @param {PromiseSettledResult<T>} result
 * @returns {T}
 */
function valueOf(result) {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
