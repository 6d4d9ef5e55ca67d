import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startNginx } from '@callplane/local-servers';
import { Failure, root } from '../bootstrap.js';
import { keepLogs } from './app-logs.js';
import type { Tenant } from './history.js';
import { APPS, newInstance, type AppName, type Instance } from './instances.js';
import { Machine } from './machine.js';
import { MediaServers } from './media-servers.js';
import { PostgresPair } from './postgres-pair.js';
import { Processes } from './processes.js';
import { RedisTrio } from './redis-trio.js';

const EACH = 2;
const CLI = join(root, 'apps/cli/dist/main.js');
/** For one command of an operator while PostgreSQL may be away, in milliseconds. */
const RTC_WITHIN_MS = 60_000;

export interface KnownTenant extends Tenant {
  key: string;
}

export interface Fleet {
  baseUrl: string;
  postgres: PostgresPair;
  redis: RedisTrio;
  media: MediaServers;
  nginx: Machine;
  instances: Instance[];
  tenants: KnownTenant[];
  /** A URL of PostgreSQL that passes no cable. */
  databaseUrl: string;
  /** Copies the logs of all servers. */
  keepLogs(folder: string): void;
  /** A further API key of a tenant; null if PostgreSQL is away. */
  newKey(tenant: Tenant): Promise<{ id: string; key: string } | null>;
  /** @returns whether the key is revoked for certain. */
  revokeKey(id: string): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Starts everything behind a load balancer: two of each app, PostgreSQL with a standby, Redis with three Sentinels, two
 * Janus and coturn.
 * @param bug the seeded bug that the apps are built with.
 */
export async function startFleet(
  tenantNames: readonly string[],
  say: (line: string) => void,
  bug?: string,
): Promise<Fleet> {
  if (bug !== undefined) buildWith(bug);
  const processes = new Processes();
  const password = randomBytes(16).toString('hex');
  const postgres = new PostgresPair(processes, password);
  const redis = new RedisTrio(processes, password);
  const media = new MediaServers(processes);
  const instances: Instance[] = [];
  let nginx: (Machine & { port: number }) | undefined;
  const close = async (): Promise<void> => {
    await nginx?.stop();
    await Promise.all(instances.map(({ machine }) => machine.stop()));
    for (const each of instances) for (const cable of [...each.database, ...each.media, each.front]) cable?.close();
    await Promise.all([redis.stop(), media.stop()]);
    await postgres.stop();
    processes.destroy();
  };
  try {
    await Promise.all([postgres.start(), redis.start(), media.start()]);
    say('PostgreSQL with a standby, Redis with three Sentinels, two Janus and coturn run');
    const databaseUrl = postgres.urlFor(postgres.nodes.map(({ port }) => port));
    const env = {
      NODE_ENV: 'production',
      REDIS_URL: redis.url,
      ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    };
    const tenants = makeTenants(tenantNames, { ...env, DATABASE_URL: databaseUrl });
    for (const app of Object.keys(APPS) as AppName[]) {
      for (let n = 1; n <= EACH; n += 1)
        instances.push(await newInstance(app, n, { processes, postgres, media, env, bug }));
    }
    await Promise.all(instances.map(({ machine }) => machine.start()));
    say(`${instances.length} apps run`);
    nginx = await newNginx(processes, instances);
    const keep = (folder: string): void => keepLogs(processes.dir, folder);
    const baseUrl = `http://127.0.0.1:${nginx.port}`;
    const operator = operatorOf({ ...env, DATABASE_URL: databaseUrl });
    const servers = { postgres, redis, media, nginx, instances };
    return { baseUrl, ...servers, tenants, databaseUrl, keepLogs: keep, ...operator, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function buildWith(bug: string): void {
  const script = join(root, 'lab', 'simulation', 'build-apps.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, bug], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Failure(`The apps cannot be built with ${bug}: ${stderr.trim()}`);
}

async function newNginx(processes: Processes, instances: readonly Instance[]): Promise<Machine & { port: number }> {
  const frontsOf = (wanted: AppName): number[] =>
    instances.flatMap(({ app, front }) => (app === wanted && front !== null ? [front.port] : []));
  const upstreams = { api: frontsOf('api'), signaling: frontsOf('signaling') };
  const port = await freePort();
  const dir = join(processes.dir, 'nginx');
  mkdirSync(dir);
  const from = join(root, 'infra', 'nginx');
  const nginx = new Machine('nginx', (onSpawn) => startNginx({ dir, from, port, upstreams, onSpawn }), processes);
  await nginx.start();
  return Object.assign(nginx, { port });
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

function operatorOf(env: Record<string, string>): Pick<Fleet, 'newKey' | 'revokeKey'> {
  const run = async (...args: string[]): Promise<{ id: string; key: string } | null> => {
    const options = { env: { PATH: process.env['PATH'], ...env }, timeout: RTC_WITHIN_MS };
    const done = promisify(execFile)(process.execPath, [CLI, ...args, '--json'], options);
    return done.then(
      ({ stdout }) => JSON.parse(stdout) as { id: string; key: string },
      () => null,
    );
  };
  return {
    newKey: ({ environmentId }) => run('keys', 'create', '--env', environmentId, '--type', 'secret'),
    revokeKey: async (id) => (await run('keys', 'revoke', id)) !== null,
  };
}

function rtc(env: Record<string, string>, ...args: string[]): Record<string, string> {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args, '--json'], {
    env: { PATH: process.env['PATH'], ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`rtc ${args.join(' ')} exited with ${status ?? 'a signal'}: ${stderr.trim()}`);
  return stdout.trim() === '' ? {} : (JSON.parse(stdout) as Record<string, string>);
}
