import { join } from 'node:path';
import {
  captureFolderOf,
  hostIPv4,
  startCoturn,
  startJanus,
  startPostgres,
  startRedis,
  type JanusOptions,
  type LocalServer,
} from '@callplane/local-servers';
import { MediaNode } from '@callplane/media';
import { findJanus, missingPrograms } from '../bootstrap.js';
import { heldPort, type Settings } from './settings.js';
import { keepRunning } from './keep-running.js';
import type { RunRecord } from './development.js';
import type { LocalSecrets } from '../local-data.js';

const RELAY_PORTS = 200;
/** Janus takes one port per peer connection, and a participant has two peer connections. */
const MEDIA_PORTS = 400;

/** A database of one developer needs no workers for reads and for logical replication. */
const POSTGRES_SETTINGS = ['io_method=sync', 'max_logical_replication_workers=0'];

export type LocalServers = Awaited<ReturnType<typeof startServers>>;

export interface ServersPlan {
  settings: Settings;
  secrets: LocalSecrets;
  record: RunRecord;
  say: (line: string) => void;
  stopSignal: AbortSignal;
  onStarted: (stop: () => Promise<void>) => void;
}

/**
 * Starts the servers for which the settings name no external one, all at once.
 * @returns their addresses, and the settings that coturn and Janus give to the apps
 */
export async function startServers(plan: ServersPlan) {
  const { settings, secrets, record, say, stopSignal, onStarted } = plan;
  const { dataDir } = settings;
  const common = (name: string) => ({
    logFile: join(dataDir, 'logs', `${name}.log`),
    onSpawn: (pid: number) => record.spawned(name, pid),
  });
  const start = async <S extends LocalServer>(name: string, begin: () => Promise<S>) => {
    const { first, stop } = await keepRunning({ name, begin, say, stopSignal });
    onStarted(stop);
    return first;
  };

  const postgres = async () => {
    const port = await heldPort();
    const options = { dataDir: join(dataDir, 'postgres'), port, password: secrets.postgresPassword, durable: true };
    const settings = POSTGRES_SETTINGS;
    return (await start('postgres', () => startPostgres({ ...options, settings, ...common('postgres') }))).url;
  };
  const redis = async () => {
    const options = { dir: join(dataDir, 'redis'), port: await heldPort(), password: secrets.redisPassword };
    return (await start('redis', () => startRedis({ ...options, ...common('redis') }))).url;
  };
  const coturn = async (): Promise<Record<string, string>> => {
    const host = hostIPv4();
    const listeningPort = await heldPort(host);
    const secret = settings.turnSecret ?? secrets.turnSecret;
    const minPort = await heldPort(host);
    const relays = { minPort, maxPort: minPort + RELAY_PORTS - 1 };
    const admin = { adminPort: await heldPort(), adminPassword: secrets.turnAdminPassword };
    const mediaAddresses = [host, ...settings.mediaIps];
    const options = { dir: join(dataDir, 'coturn'), listeningPort, host, secret, mediaAddresses, ...relays, ...admin };
    await start('coturn', () => startCoturn({ ...options, ...common('coturn') }));
    const address = `${host}:${listeningPort}`;
    return {
      STUN_URLS: process.env['STUN_URLS'] || `stun:${address}`,
      TURN_URLS: `turn:${address}?transport=udp,turn:${address}?transport=tcp`,
      TURN_SECRET: secret,
      TURN_ADMIN_URLS: `telnet://127.0.0.1:${admin.adminPort}`,
      TURN_ADMIN_PASSWORD: admin.adminPassword,
    };
  };

  const janus = async (): Promise<Record<string, string>> => {
    const host = hostIPv4();
    if (host.startsWith('127.')) {
      // Janus never uses loopback for media. It would start, but publishing would wait forever.
      say('  Janus is not started: it cannot send media over loopback, and this machine has no other network address');
      return {};
    }
    const wsPort = await heldPort();
    const rtpPortMin = await heldPort(host);
    const apiSecret = settings.mediaApiSecret ?? secrets.mediaApiSecret;
    const adminKey = settings.mediaAdminKey ?? secrets.mediaAdminKey;
    const options = {
      dir: join(dataDir, 'janus'),
      host,
      wsPort,
      rtpPortMin,
      rtpPortMax: rtpPortMin + MEDIA_PORTS - 1,
      apiSecret,
      adminKey,
      adminSecret: secrets.mediaAdminSecret,
    };
    const { url } = await start('janus', () => startWatchedJanus({ ...options, ...common('janus') }));
    return {
      MEDIA_NODES: `local=${url}`,
      MEDIA_API_SECRET: apiSecret,
      MEDIA_ADMIN_KEY: adminKey,
      MEDIA_CAPTURE_FOLDER: captureFolderOf(options.dir),
    };
  };

  // The bootstrap has installed the programs where that is possible. Only Redis is required.
  const hasCoturn = missingPrograms(['turnserver']).length === 0;
  const none: Record<string, string> = {};
  // Waits for all servers even if one fails: otherwise servers that start meanwhile would never be stopped.
  const [database, queue, turn, media] = await Promise.allSettled([
    settings.databaseUrl ?? postgres(),
    settings.redisUrl ?? redis(),
    settings.turnUrls === undefined && hasCoturn ? coturn() : none,
    settings.mediaNodes === undefined && findJanus() !== undefined ? janus() : none,
  ]);
  return {
    databaseUrl: valueOf(database),
    redisUrl: valueOf(queue),
    turn: valueOf(turn),
    media: valueOf(media),
  };
}

/** Stops a Janus that does not answer, or whose VideoRoom does not, with SIGKILL if need be. Then it is started again. */
async function startWatchedJanus(options: JanusOptions): Promise<LocalServer> {
  const server = await startJanus(options);
  const { apiSecret, adminKey } = options;
  const settings = { id: 'local', url: server.url, apiSecret, adminKey, random: Math.random, allowOutdated: true };
  const node = new MediaNode(settings);
  node.on('down', () => void server.stop());
  server.onExit(() => void node.close());
  return server;
}

function valueOf<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
