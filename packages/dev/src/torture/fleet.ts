import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, SHORT_RUN_FLAGS, startNginx, startServer, startWatchdog } from '@callplane/local-servers';
import { root } from '../bootstrap.js';
import { Cable } from './cable.js';
import { Machine } from './machine.js';
import { PostgresPair } from './postgres-pair.js';
import { RedisTrio } from './redis-trio.js';
import type { Tenant } from './history.js';

/** Shorter than in production, so that the leases of killed workers expire within the run. */
export const LEASE_MS = 10_000;
export const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
/** Room for the end of requests in progress. */
const STOP_WITHIN_MS = 15_000;
const READY_WITHIN_MS = 20_000;
const EACH = 2;

/** Apps and the variable with the port that answers /livez. */
const APPS = {
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
  /** The file with the offset of its clock, as libfaketime reads it; null without libfaketime. */
  clockFile: string | null;
  logFile: string;
}

export interface KnownTenant extends Tenant {
  key: string;
}

export interface Fleet {
  baseUrl: string;
  postgres: PostgresPair;
  redis: RedisTrio;
  nginx: Machine;
  instances: Instance[];
  tenants: KnownTenant[];
  /** A URL of PostgreSQL that passes no cable. */
  databaseUrl: string;
  close(): Promise<void>;
}

/** Starts everything behind a load balancer: two of each app, PostgreSQL with a standby, Redis with three Sentinels. */
export async function startFleet(tenantNames: readonly string[], say: (line: string) => void): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'callplane-torture-'));
  chmodSync(dir, 0o755);
  const watchdog = startWatchdog();
  const watch = (pid: number): void => watchdog.watch(pid, 'TERM');
  const password = randomBytes(16).toString('hex');
  const postgres = new PostgresPair(dir, password, (pid) => watchdog.watch(pid, 'INT'));
  const redis = new RedisTrio(dir, password, watch);
  const instances: Instance[] = [];
  let nginx: Machine | undefined;
  const close = async (): Promise<void> => {
    await nginx?.stop();
    await Promise.all(instances.map(({ machine }) => machine.stop()));
    for (const { database, front } of instances) for (const cable of [...database, front]) cable?.close();
    await redis.stop();
    await postgres.stop();
    watchdog.release();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await Promise.all([postgres.start(), redis.start()]);
    say('PostgreSQL with a standby and Redis with three Sentinels run');
    const databaseUrl = postgres.urlFor(postgres.nodes.map(({ port }) => port));
    const shared = {
      NODE_ENV: 'production',
      REDIS_URL: redis.url,
      ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    };
    const tenants = makeTenants(tenantNames, { ...shared, DATABASE_URL: databaseUrl });
    for (const app of Object.keys(APPS) as AppName[]) {
      for (let n = 1; n <= EACH; n += 1) instances.push(await newInstance(dir, app, n, shared, postgres, watch));
    }
    await Promise.all(instances.map(({ machine }) => machine.start()));
    say(`${instances.length} apps run`);
    const frontsOf = (wanted: AppName): number[] =>
      instances.flatMap(({ app, front }) => (app === wanted && front !== null ? [front.port] : []));
    const upstreams = { api: frontsOf('api'), signaling: frontsOf('signaling') };
    const port = await freePort();
    const nginxDir = join(dir, 'nginx');
    mkdirSync(nginxDir);
    const from = join(root, 'infra', 'nginx');
    nginx = new Machine('nginx', () => startNginx({ dir: nginxDir, from, port, upstreams, onSpawn: watch }));
    await nginx.start();
    return { baseUrl: `http://127.0.0.1:${port}`, postgres, redis, nginx, instances, tenants, databaseUrl, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function newInstance(
  dir: string,
  app: AppName,
  n: number,
  shared: Record<string, string>,
  postgres: PostgresPair,
  watch: (pid: number) => void,
): Promise<Instance> {
  const database = await Promise.all(postgres.nodes.map(({ port }) => Cable.open(port)));
  const [port, healthPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const ports = { PORT: String(port), HEALTH_PORT: String(healthPort), METRICS_PORT: String(metricsPort) };
  const isServer = APPS[app] === 'PORT';
  const front = isServer ? await Cable.open(port) : null;
  const name = `${app === 'signaling' ? 'gateway' : app} ${n}`;
  const file = (end: string): string => join(dir, `${name.replace(' ', '-')}${end}`);
  // One of the two has a clock that jumps.
  const clockFile = n === 2 && existsSync(FAKETIME) ? file('.clock') : null;
  if (clockFile !== null) writeFileSync(clockFile, '+0\n');
  const env = {
    PATH: process.env['PATH'],
    ...shared,
    ...ports,
    DATABASE_URL: postgres.urlFor(database.map((cable) => cable.port)),
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
    ...(clockFile === null
      ? {}
      : { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: clockFile, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1' }),
  };
  const origin = `http://127.0.0.1:${isServer ? port : healthPort}`;
  const machine = new Machine(name, () =>
    startServer({
      name,
      port,
      url: origin,
      command: {
        file: process.execPath,
        args: [...SHORT_RUN_FLAGS, join(root, 'apps', app, 'dist', 'main.js')],
        options: {},
      },
      env,
      cwd: root,
      logFile: file('.log'),
      isReady: () =>
        fetch(`${origin}/livez`, { signal: AbortSignal.timeout(1000) }).then(
          ({ ok }) => ok,
          () => false,
        ),
      readyWithinMs: READY_WITHIN_MS,
      stopSteps: [
        { signal: 'SIGTERM', graceMs: STOP_WITHIN_MS },
        { signal: 'SIGKILL', graceMs: 5000 },
      ],
      onSpawn: watch,
    }),
  );
  return { app, machine, database, front, clockFile, logFile: file('.log') };
}

function makeTenants(names: readonly string[], env: Record<string, string>): KnownTenant[] {
  rtc(env, 'db', 'migrate');
  return names.map((name) => {
    const { id: projectId = '' } = rtc(env, 'projects', 'create', '--name', name);
    const { id: environmentId = '' } = rtc(env, 'environments', 'create', '--project', projectId, '--name', name);
    const { key = '' } = rtc(env, 'keys', 'create', '--env', environmentId, '--type', 'secret');
    return { name, projectId, environmentId, key };
  });
}

function rtc(env: Record<string, string>, ...args: string[]): Record<string, string> {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'apps/cli/dist/main.js'), ...args, '--json'],
    { env: { PATH: process.env['PATH'], ...env }, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`rtc ${args.join(' ')} exited with ${status ?? 'a signal'}: ${stderr.trim()}`);
  return stdout.trim() === '' ? {} : (JSON.parse(stdout) as Record<string, string>);
}

/** Messages of log lines that no fault explains. */
const NEVER = /"message":"process failed/;

/** Lines in the logs of the apps that must not be there. */
export function failuresIn(instances: readonly Instance[]): { app: string; message: string }[] {
  return instances.flatMap(({ machine, logFile }) =>
    readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => NEVER.test(line))
      .map((message) => ({ app: machine.name, message: message.slice(0, 500) })),
  );
}

/** Copies the logs of all servers, for the search after a broken guarantee. */
export function keepLogs(instances: readonly Instance[], folder: string): void {
  mkdirSync(folder, { recursive: true });
  const dirs = new Set(instances.map(({ logFile }) => join(logFile, '..')));
  for (const dir of dirs) {
    for (const name of readdirSync(dir).filter((file) => file.endsWith('.log'))) {
      writeFileSync(join(folder, name), readFileSync(join(dir, name)));
    }
  }
}
