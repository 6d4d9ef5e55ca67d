import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, SHORT_RUN_FLAGS, startServer } from '@callplane/local-servers';
import { root } from '../bootstrap.js';
import { Cable } from './cable.js';
import { Machine } from './machine.js';
import type { MediaServers } from './media-servers.js';
import type { PostgresPair } from './postgres-pair.js';
import type { Processes } from './processes.js';

/** Shorter than in production, so that the leases of killed workers expire within the run. */
export const LEASE_MS = 10_000;
/** Room for the end of requests in progress. */
const STOP_WITHIN_MS = 15_000;
const READY_WITHIN_MS = 60_000;

/** Apps and the variable with the port that answers /livez. */
export const APPS = {
  api: 'PORT',
  signaling: 'PORT',
  'cleanup-worker': 'HEALTH_PORT',
  'webhook-worker': 'HEALTH_PORT',
} as const;
export type AppName = keyof typeof APPS;

/** One instance of an app, with the connections of its own that the nemesis can cut. */
export interface Instance {
  app: AppName;
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

/** What all instances have in common. */
export interface Surroundings {
  processes: Processes;
  postgres: PostgresPair;
  media: MediaServers;
  env: Record<string, string>;
  /** The seeded bugs that the apps are built with, with commas between them. */
  bug: string | undefined;
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
    PATH: process.env['PATH'],
    ...around.env,
    PORT: String(port),
    HEALTH_PORT: String(healthPort),
    METRICS_PORT: String(metricsPort),
    DATABASE_URL: postgres.urlFor(database.map((cable) => cable.port)),
    ...servers.settingsFor(media.map((cable) => cable.port)),
    ...settingsOf(app),
    ...(library === null || clockFile === null ? {} : jumpingClock(library, clockFile)),
  };
  const origin = `http://127.0.0.1:${isServer ? port : healthPort}`;
  const main = around.bug === undefined ? 'main.js' : join(`bug-${around.bug.replaceAll(',', '_')}`, 'main.mjs');
  const args = [...SHORT_RUN_FLAGS, join(root, 'apps', app, 'dist', main)];
  const machine = new Machine(
    name,
    (onSpawn) =>
      startServer({
        name,
        port,
        url: origin,
        command: { file: process.execPath, args, options: {} },
        env,
        cwd: root,
        logFile: file('.log'),
        isReady: () => answersAt(origin),
        readyWithinMs: READY_WITHIN_MS,
        stopSteps: [
          { signal: 'SIGTERM', graceMs: STOP_WITHIN_MS },
          { signal: 'SIGKILL', graceMs: 5000 },
        ],
        onSpawn,
      }),
    processes,
  );
  return { app, machine, database, front, media, clockFile, logFile: file('.log') };
}

function settingsOf(app: AppName): Record<string, string> {
  return {
    DATABASE_POOL_MAX: '5',
    HOST: '127.0.0.1',
    HEALTH_HOST: '127.0.0.1',
    LOG_FORMAT: 'json',
    ...(app === 'api'
      ? { TRUST_PROXY: '127.0.0.1', RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0' }
      : {}),
    ...(app === 'signaling' ? { TRUST_PROXY: '127.0.0.1', RATE_LIMIT_SIGNALING_PER_SECOND: '0' } : {}),
    ...(app.endsWith('worker') ? { LEASE_MS: String(LEASE_MS), SWEEP_INTERVAL_MS: '1000' } : {}),
    ...(app === 'api' || app === 'webhook-worker'
      ? { WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' }
      : {}),
    ...(app === 'webhook-worker' ? { DELIVERY_DEADLINE_MS: '5000' } : {}),
  };
}

/** The monotonic clock never jumps, on any system. */
function jumpingClock(library: string, file: string): Record<string, string> {
  return { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1' };
}

function answersAt(origin: string): Promise<boolean> {
  return fetch(`${origin}/livez`, { signal: AbortSignal.timeout(1000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}
