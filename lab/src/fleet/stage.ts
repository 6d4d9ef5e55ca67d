import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  childrenOf,
  freePort,
  redisUrlOf,
  startPostgres,
  startRedis,
  type LocalServer,
} from '@callplane/local-servers';
import { root } from '../bootstrap.js';
import { ApiClient } from '../client.js';
import { APPS, LOCAL_RECEIVERS, mainOf, startNode, type AppName } from './apps.js';
import { Operator } from './operator.js';
import { Processes } from './processes.js';

interface Started extends Pick<LocalServer, 'pid' | 'stop'> {
  /** Its HTTP address. */
  origin: string;
}

export type Stage = Awaited<ReturnType<typeof openStage>>;

/**
 * Opens a stage for one benchmark, and closes it after its work.
 * @param postgresSettings more settings of PostgreSQL, such as `work_mem=8MB`.
 */
export async function onStage(work: (stage: Stage) => Promise<void>, postgresSettings?: string[]): Promise<void> {
  const stage = await openStage(postgresSettings);
  try {
    await work(stage);
  } finally {
    await stage.close();
  }
}

/**
 * The real servers and processes of one benchmark, with a migrated database and one tenant; `close` stops them all.
 * PostgreSQL is durable: a commit waits for the disk, as in production.
 */
async function openStage(postgresSettings: string[] = []) {
  const processes = new Processes();
  const { dir } = processes;
  const closers: (() => unknown)[] = [];
  const onClose = (close: () => unknown): void => void closers.push(close);
  const onSpawn = (pid: number): void => processes.watch(pid);
  const close = async (): Promise<void> => {
    for (const each of closers.reverse()) await each();
    processes.destroy();
  };
  const password = randomBytes(16).toString('hex');
  const postgresPort = await freePort();
  const openPostgres = async () => {
    const server = await startPostgres({
      dataDir: join(dir, 'postgres'),
      port: postgresPort,
      password,
      durable: true,
      settings: postgresSettings,
      onSpawn,
    });
    onClose(() => server.stop());
    return server;
  };
  const postgres = await openPostgres();
  const redis = await startRedis({ dir: join(dir, 'redis'), port: await freePort(), password, onSpawn });
  onClose(() => redis.stop());
  const environment = {
    NODE_ENV: 'production',
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    ...LOCAL_RECEIVERS,
    // Otherwise a benchmark would measure the rate limits.
    RATE_LIMIT_READS_PER_SECOND: '0',
    RATE_LIMIT_WRITES_PER_SECOND: '0',
    RATE_LIMIT_SIGNALING_PER_SECOND: '0',
    RATE_LIMIT_MESSAGES_PER_SECOND: '0',
    RATE_LIMIT_METADATA_PER_SECOND: '0',
    // For example a `--require` that starts a profiler.
    NODE_OPTIONS: process.env['BENCH_NODE_OPTIONS'] ?? '',
  };
  const operator = new Operator(environment);
  await operator.rtc('db', 'migrate');
  const tenant = await operator.newTenant('bench');

  const startProgram = async (script: string, portName: string, readyPath: string, env: NodeJS.ProcessEnv) => {
    const port = Number(env[portName] ?? (await freePort()));
    const all = { ...environment, ...env, [portName]: String(port) };
    const server = await startNode({ name: script, script, port, readyPath, env: all, onSpawn });
    onClose(() => server.stop());
    return { pid: server.pid, origin: server.url, stop: () => server.stop() };
  };
  return {
    dir,
    processes,
    environment,
    operator,
    tenant,
    postgres,
    redis,
    /** Stops PostgreSQL, and starts it again after some time. */
    async restartPostgres(awayMs: number) {
      await postgres.stop();
      await delay(awayMs);
      await openPostgres();
    },
    /** Registers a server of one benchmark, to be stopped by `close`. */
    onClose,
    /** Starts an app, at a free port unless `env` names one. Its logs are discarded. */
    start: (app: AppName, env: NodeJS.ProcessEnv = {}): Promise<Started> =>
      startProgram(mainOf(app), APPS[app], '/readyz', {
        REDIS_URL: redisUrlOf(redis.url, app),
        ...env,
      }),
    startFloor: (): Promise<Started> =>
      startProgram(join(root, 'lab/dist/bench/floor.js'), 'PORT', '/ready', { FLOOR_TENANT: JSON.stringify(tenant) }),
    /** A client of an API with the key of the tenant. */
    clientOf: ({ origin }: Started) => new ApiClient(origin, tenant.key),
    close,
  };
}

/** CPU time of a process in user and kernel mode; its steps are 10 ms. */
export function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program, in parentheses, may contain spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** CPU time of some processes and of all that they have started. One that ends meanwhile counts nothing. */
export function cpuMsOf(processes: readonly { pid: number }[]): number {
  const times = processes
    .flatMap(({ pid }) => treeOf(pid))
    .map((pid) => {
      try {
        return cpuMs(pid);
      } catch {
        return 0;
      }
    });
  return times.reduce((sum, ms) => sum + ms, 0);
}

/** A process and all that it has started. A thread has children of its own: Chromium starts its services on one. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)].filter((one) => existsSync(`/proc/${one}/stat`));
}

/** Resident memory of a process, now or at most, in KiB. */
export function memoryKiB(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
