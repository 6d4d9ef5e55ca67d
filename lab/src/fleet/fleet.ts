import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { freePort } from '@callplane/local-servers';
import { startNginx } from '@callplane/testing';
import { root, Failure } from '../bootstrap.js';
import { APPS, newAgent, newInstance, type AppName, type Instance } from './apps.js';
import { Machine } from './machine.js';
import { MediaServers } from './media-servers.js';
import { Operator, type KnownTenant } from './operator.js';
import { PostgresPair } from './postgres-pair.js';
import { Processes } from './processes.js';
import { RecordingsStore } from './recordings-store.js';
import { RedisTrio } from './redis-trio.js';
import { BUGS, withPatches } from '../../simulation/bugs.mjs';

const EACH = 2;
const JANUSES = 2;

export interface Fleet {
  baseUrl: string;
  postgres: PostgresPair;
  redis: RedisTrio;
  media: MediaServers;
  store: RecordingsStore;
  nginx: Machine;
  instances: Instance[];
  tenants: KnownTenant[];
  operator: Operator;
  /** A URL of PostgreSQL that passes no cable. */
  databaseUrl: string;
  keepLogs(folder: string): void;
  close(): Promise<void>;
}

/**
 * Starts everything behind a load balancer: two of each app, PostgreSQL with a standby, Redis with three Sentinels, two
 * Janus of two regions with their agents, a store of recordings, and coturn.
 * @param bugs the seeded bugs that the apps are built with.
 */
export async function startFleet(
  tenantNames: readonly string[],
  say: (line: string) => void,
  bugs: readonly string[] = [],
): Promise<Fleet> {
  const processes = new Processes();
  const password = randomBytes(16).toString('hex');
  const postgres = new PostgresPair(processes, password);
  const redis = new RedisTrio(processes, password);
  const media = new MediaServers(processes, JANUSES);
  const store = new RecordingsStore(processes.dir);
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
    const built = bugs.length === 0 ? root : await buildWithBugs(join(processes.dir, 'built'), bugs);
    await Promise.all([postgres.start(), redis.start(), media.start()]);
    say('PostgreSQL with a standby, Redis with three Sentinels, two Janus and coturn run');
    const databaseUrl = postgres.urlFor(postgres.nodes.map(({ port }) => port));
    const env = {
      NODE_ENV: 'production',
      REDIS_URL: redis.url,
      ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      RECORDINGS_FOLDER: store.folder,
    };
    const operator = new Operator({ ...env, DATABASE_URL: databaseUrl });
    await operator.rtc('db', 'migrate');
    const tenants = await Promise.all(tenantNames.map((name) => operator.newTenant(name)));
    const around = { processes, postgres, media, env, built };
    for (const app of Object.keys(APPS) as AppName[]) {
      for (let n = 1; n <= EACH; n += 1) instances.push(await newInstance(app, n, around));
    }
    for (let n = 1; n <= JANUSES; n += 1) instances.push(await newAgent(n, around));
    await Promise.all(instances.map(({ machine }) => machine.start()));
    say(`${instances.length} apps and agents run`);
    nginx = await newNginx(processes, instances);
    const keep = (folder: string): void => keepLogs(processes.dir, folder);
    const servers = { postgres, redis, media, store, nginx, instances };
    const baseUrl = `http://127.0.0.1:${nginx.port}`;
    return { baseUrl, ...servers, tenants, operator, databaseUrl, keepLogs: keep, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function newNginx(processes: Processes, instances: readonly Instance[]): Promise<Machine & { port: number }> {
  const frontsOf = (wanted: AppName): number[] =>
    instances.flatMap(({ app, front }) => (app === wanted && front !== null ? [front.port] : []));
  const upstreams = { api: frontsOf('api'), signaling: frontsOf('signaling') };
  const port = await freePort();
  const dir = join(processes.dir, 'nginx');
  mkdirSync(dir);
  const nginx = new Machine('nginx', (onSpawn) => startNginx({ dir, port, upstreams, onSpawn }), processes);
  await nginx.start();
  return Object.assign(nginx, { port });
}

/** Copies the logs of all servers, for the search after a broken guarantee. */
function keepLogs(dir: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const inside = readdirSync(dir, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? each.name : []));
  for (const from of ['', ...inside]) {
    for (const name of readdirSync(join(dir, from)).filter((file) => file.endsWith('.log')))
      copyFileSync(join(dir, from, name), join(folder, from === '' ? name : `${from}.log`));
  }
}

/** Files that programs and settings of the build find by their place. */
const LINKED = ['node_modules', 'package.json', 'docs', 'infra', 'prisma', 'tsconfig.base.json', 'tsconfig.build.json'];
const COPIED = ['apps', 'packages'];

/**
 * Copies the built repository and compiles the files that seeded bugs change. Packages find each other by relative
 * links, and so the copy uses its own.
 * @param folder does not exist yet.
 * @returns the folder.
 */
async function buildWithBugs(folder: string, names: readonly string[]): Promise<string> {
  const bugs = names.map((name) => {
    const bug = BUGS.find((each) => each.name === name);
    if (bug === undefined)
      throw new Failure(`There is no seeded bug "${name}". lab/simulation/bugs.mjs names all of them.`);
    return bug;
  });
  const patches = bugs.flatMap((bug) => bug.patches);
  for (const name of COPIED)
    await cp(join(root, name), join(folder, name), { recursive: true, verbatimSymlinks: true });
  for (const name of LINKED) await symlink(join(root, name), join(folder, name));
  for (const file of new Set(patches.map((patch) => patch.file)))
    await writeFile(join(folder, file), withPatches(file, await readFile(join(root, file), 'utf8'), patches));
  const changed = new Set(patches.map(({ file }) => file.split('/').slice(0, 2).join('/')));
  const compiler = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
  for (const part of changed) {
    const args = [compiler, '-p', join(folder, part, 'tsconfig.build.json')];
    await promisify(execFile)(process.execPath, args).catch((error: unknown) => {
      throw new Failure(
        `${part} cannot be built with ${names.join(', ')}: ${String((error as { stdout?: string }).stdout)}`,
      );
    });
  }
  return folder;
}
