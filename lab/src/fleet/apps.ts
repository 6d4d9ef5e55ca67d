import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  freePort,
  MALLOC,
  NODE_FLAGS,
  redisUrlOf,
  SHORT_RUN_FLAGS,
  startServer,
  type LocalServer,
} from '@callplane/local-servers';
import { root } from '../bootstrap.js';
import { Cable } from './cable.js';
import { Machine } from './machine.js';
import { FORWARD_PORTS, REGIONS, type MediaServers } from './media-servers.js';
import type { PostgresPair } from './postgres-pair.js';
import type { Processes } from './processes.js';

/** Shorter than in production, so that the leases of killed workers expire within the run. */
export const LEASE_MS = 10_000;
/** Room for the end of requests in progress. */
const STOP_WITHIN_MS = 15_000;
const READY_WITHIN_MS = 60_000;

/** Apps and the variable with the port that answers /livez and /readyz. */
export const APPS = {
  api: 'PORT',
  signaling: 'PORT',
  'cleanup-worker': 'HEALTH_PORT',
  'webhook-worker': 'HEALTH_PORT',
  recorder: 'HEALTH_PORT',
} as const;
export type AppName = keyof typeof APPS;

/** Where the compiled program of an app is. */
export const mainOf = (app: AppName | 'cli', built = root): string => join(built, 'apps', app, 'dist', 'main.js');

interface NodeProgram {
  name: string;
  script: string;
  args?: readonly string[];
  flags?: readonly string[];
  /** The port and the path that answer once the program is ready. */
  port: number;
  readyPath: string;
  env: NodeJS.ProcessEnv;
  /** `/dev/null` by default. */
  logFile?: string;
  onSpawn: (pid: number) => void;
}

/** Starts an app, or another program of the repository. Its `url` is its HTTP address. */
export function startNode(program: NodeProgram): Promise<LocalServer> {
  const { name, port, script, readyPath, env, onSpawn } = program;
  const { args = [], flags = NODE_FLAGS, logFile = '/dev/null' } = program;
  const url = `http://127.0.0.1:${port}`;
  return startServer({
    name,
    port,
    url,
    command: { file: process.execPath, args: [...flags, script, ...args], options: {} },
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      HEALTH_HOST: '127.0.0.1',
      LOG_FORMAT: 'json',
      ...MALLOC,
      ...env,
    },
    cwd: root,
    logFile,
    isReady: () =>
      fetch(`${url}${readyPath}`, { signal: AbortSignal.timeout(1000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [
      { signal: 'SIGTERM', graceMs: STOP_WITHIN_MS },
      { signal: 'SIGKILL', graceMs: 5000 },
    ],
    onSpawn,
  });
}

/** One instance of an app, with the connections of its own that the nemesis can cut. */
export interface Instance {
  app: AppName | 'media-agent';
  machine: Machine;
  /** To the two servers of PostgreSQL. */
  database: Cable[];
  /** From the load balancer; null for workers. */
  front: Cable | null;
  /** To each Janus; empty for apps without media. */
  media: Cable[];
  /** The file with the offset of its clock, as libfaketime reads it; null without libfaketime. */
  clockFile: string | null;
  logFile: string;
}

/** Shared by all instances. */
interface Surroundings {
  processes: Processes;
  postgres: PostgresPair;
  media: MediaServers;
  env: Record<string, string>;
  built: string;
}

/** The library of libfaketime, where Debian and its derivatives install it; null without it. */
export function faketimeLibrary(): string | null {
  const folders = existsSync('/usr/lib') ? readdirSync('/usr/lib').filter((name) => name.includes('-linux-')) : [];
  const files = folders.map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`);
  return files.find((file) => existsSync(file)) ?? null;
}

/** @param n its number, from 1 on. The second one of an app has a clock that jumps. */
export async function newInstance(app: AppName, n: number, around: Surroundings): Promise<Instance> {
  const { processes, postgres, media: servers } = around;
  const database = await Promise.all(postgres.nodes.map(({ port }) => Cable.open(port)));
  const hasMedia = app === 'signaling' || app === 'cleanup-worker';
  const media = hasMedia ? await Promise.all(servers.ports.map((port) => Cable.open(port))) : [];
  const [port, healthPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const isServer = APPS[app] === 'PORT';
  const front = isServer ? await Cable.open(port) : null;
  const name = `${app === 'signaling' ? 'gateway' : app} ${n}`;
  const file = (end: string): string => join(processes.dir, `${name.replace(' ', '-')}${end}`);
  const library = n === 2 ? faketimeLibrary() : null;
  const clockFile = library === null ? null : file('.clock');
  if (clockFile !== null) writeFileSync(clockFile, '+0\n');
  const env = {
    ...around.env,
    REDIS_URL: redisUrlOf(around.env['REDIS_URL'] ?? '', app),
    PORT: String(port),
    HEALTH_PORT: String(healthPort),
    METRICS_PORT: String(metricsPort),
    DATABASE_URL: postgres.urlFor(database.map((cable) => cable.port)),
    ...servers.settingsFor(media.map((cable) => cable.port)),
    ...settingsOf(app),
    RECORDER_SCRATCH_FOLDER: file('-scratch'),
    ...(library === null || clockFile === null ? {} : jumpingClock(library, clockFile)),
  };
  const program = {
    name,
    script: mainOf(app, around.built),
    flags: SHORT_RUN_FLAGS,
    port: isServer ? port : healthPort,
    readyPath: '/livez',
    env,
    logFile: file('.log'),
  };
  const machine = new Machine(name, (onSpawn) => startNode({ ...program, onSpawn }), processes);
  return { app, machine, database, front, media, clockFile, logFile: program.logFile };
}

/** The agent beside a Janus, which ships its recordings. Its clock is the one of Janus. */
export async function newAgent(n: number, { processes, postgres, media, env, built }: Surroundings): Promise<Instance> {
  const database = await Promise.all(postgres.nodes.map(({ port }) => Cable.open(port)));
  const port = await freePort();
  const name = `agent ${n}`;
  const program = {
    name,
    script: mainOf('cli', built),
    args: ['media', 'agent', `m${n}`, `ws://127.0.0.1:${media.ports[n - 1]}`, '--region', REGIONS[n - 1] ?? ''],
    flags: SHORT_RUN_FLAGS,
    port,
    readyPath: '/metrics',
    env: {
      ...env,
      REDIS_URL: redisUrlOf(env['REDIS_URL'] ?? '', 'cli'),
      METRICS_PORT: String(port),
      DATABASE_URL: postgres.urlFor(database.map((cable) => cable.port)),
      ...media.settingsFor(),
      MEDIA_CAPTURE_FOLDER: media.captureFolders[n - 1] ?? '',
    },
    logFile: join(processes.dir, `agent-${n}.log`),
  };
  const machine = new Machine(name, (onSpawn) => startNode({ ...program, onSpawn }), processes);
  return { app: 'media-agent', machine, database, front: null, media: [], clockFile: null, logFile: program.logFile };
}

const OF_GATEWAYS = {
  TRUST_PROXY: '127.0.0.1',
  RATE_LIMIT_SIGNALING_PER_SECOND: '0',
  MEDIA_NODES_PER_ROOM: String(REGIONS.length),
  MEDIA_FORWARD_PORTS: `${FORWARD_PORTS.first}-${FORWARD_PORTS.last}`,
};

function settingsOf(app: AppName): Record<string, string> {
  return {
    DATABASE_POOL_MAX: '5',
    ...(app === 'api'
      ? { TRUST_PROXY: '127.0.0.1', RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0' }
      : {}),
    ...(app === 'signaling' ? OF_GATEWAYS : {}),
    ...(app === 'recorder' ? { RECORDER_LEASE_MS: String(LEASE_MS), RECORDER_SWEEP_INTERVAL_MS: '1000' } : {}),
    ...(app.endsWith('worker') ? { LEASE_MS: String(LEASE_MS), SWEEP_INTERVAL_MS: '1000' } : {}),
    ...(app === 'api' || app === 'webhook-worker' ? LOCAL_RECEIVERS : {}),
    ...(app === 'webhook-worker' ? { DELIVERY_DEADLINE_MS: '5000' } : {}),
  };
}

/** Settings that allow receivers on this machine. */
export const LOCAL_RECEIVERS = { WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' };

/** The monotonic clock never jumps, on any system. */
function jumpingClock(library: string, file: string): Record<string, string> {
  return { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1' };
}
