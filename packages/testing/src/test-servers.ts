import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  captureFolderOf,
  childrenOf,
  freePort,
  hostIPv4,
  startCoturn,
  startJanus,
  startPostgres,
  type CoturnOptions,
  type LocalServer,
  type PostgresOptions,
} from '@callplane/local-servers';
import { copyPostgres } from './postgres-copy.js';
import { createDatabase, type TestDatabase } from './test-database.js';
import { stopAtEnd } from './resources.js';

/** A real server that belongs to one test file, which may kill or freeze it. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** The id of the current process; changes with restart(). */
  readonly pid: number;
  /** Sends a signal to the server's main process. */
  kill(signal: NodeJS.Signals): void;
  /** Stops the server gracefully and starts it again on the same port and data. */
  restart(): Promise<void>;
  /** Starts the server again after a kill or stop. */
  start(): Promise<void>;
  /** SIGSTOP to the server and all of its children: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Idempotent; called at the end of the test file. */
  stop(): Promise<void>;
}

export type TestPostgres = TestServer & {
  /** Its data directory. */
  readonly dataDir: string;
  /** Creates a migrated database on this server. */
  createDatabase(): Promise<TestDatabase>;
};

const POSTGRES_PASSWORD = 'test-postgres-password';

/**
 * Starts a durable PostgreSQL for this test file alone, for tests that kill, freeze or restart it. All others share one
 * server through createTestDatabase(). `url` is the superuser's.
 * @param backup a data directory copied from another server; the server starts with a copy of it. Default: the backup
 * of the run's shared server.
 */
export async function startTestPostgres(backup = process.env['TEST_POSTGRES_COPY']): Promise<TestPostgres> {
  if (backup === undefined) throw new Error('TEST_POSTGRES_COPY is not set: run tests with `npm test -- <path>`');
  return startPostgresWith((dataDir) => {
    execFileSync('cp', ['-a', backup, dataDir]);
    return Promise.resolve(undefined);
  });
}

/** Starts a streaming standby of `primary` for this test file alone, under a name for `synchronous_standby_names`. */
export async function startTestStandby(primary: TestPostgres, name: string): Promise<TestPostgres> {
  return startPostgresWith(async (dataDir) => {
    await copyPostgres(primary.url, primary.dataDir, dataDir, () => Promise.resolve());
    return { port: primary.port, name };
  });
}

async function startPostgresWith(
  prepare: (dataDir: string) => Promise<PostgresOptions['standbyOf']>,
): Promise<TestPostgres> {
  const dir = temporaryDirectory('postgres');
  const port = await freePort();
  const dataDir = join(dir, 'data');
  const standbyOf = await prepare(dataDir);
  let isStandby = standbyOf !== undefined;
  const start = async () => {
    const server = await startPostgres({
      dataDir,
      port,
      password: POSTGRES_PASSWORD,
      durable: true,
      ...(isStandby && standbyOf !== undefined ? { standbyOf } : {}),
    });
    // After its promotion it restarts as a primary.
    isStandby = existsSync(join(dataDir, 'standby.signal'));
    return { ...server, url: server.adminUrl };
  };
  const server = await testServer(dir, start);
  return Object.assign(server, { dataDir, createDatabase: () => createDatabase(server.url) });
}

export type TestCoturn = TestServer & {
  host: string;
  /** The secret that the API signs TURN credentials with. */
  secret: string;
  /** Its administration interface, as TURN_ADMIN_URLS names it. */
  adminUrl: string;
  adminPassword: string;
};

/** Starts a coturn on the host's address, with the shipped policy. */
export async function startTestCoturn(
  options: Pick<CoturnOptions, 'mediaAddresses' | 'userQuota' | 'moreRelayAddresses'> = {},
): Promise<TestCoturn> {
  const dir = temporaryDirectory('coturn');
  const facts = { host: hostIPv4(), secret: 'test-turn-secret', adminPassword: 'test-turn-admin-password' };
  const [listeningPort, adminPort] = [await freePort(facts.host), await freePort()];
  const ports = { listeningPort, adminPort, minPort: 31_000, maxPort: 31_999 };
  const start = () => startCoturn({ dir: join(dir, 'coturn'), ...facts, ...ports, ...options });
  return Object.assign(await testServer(dir, start), facts, { adminUrl: `telnet://127.0.0.1:${adminPort}` });
}

export type TestJanus = TestServer & {
  /** The address for media. */
  host: string;
  apiSecret: string;
  adminKey: string;
  adminSecret: string;
  /** Its administration interface. */
  adminUrl: string;
  /** Where it may write recordings. */
  captureFolder: string;
  log(): string;
};

/** Starts a Janus on the host's address; `url` is its WebSocket interface. */
export async function startTestJanus(): Promise<TestJanus> {
  const dir = temporaryDirectory('janus');
  const facts = {
    host: hostIPv4(),
    apiSecret: 'test-janus-api-secret',
    adminKey: 'test-janus-admin-key',
    adminSecret: 'test-janus-admin-secret',
  };
  const [wsPort, adminPort] = [await freePort(), await freePort()];
  const start = () =>
    startJanus({ dir: join(dir, 'janus'), wsPort, adminPort, rtpPortMin: 30_000, rtpPortMax: 30_999, ...facts });
  const server = await testServer(dir, start);
  const log = () => readFileSync(join(dir, 'janus', 'janus.log'), 'utf8');
  return Object.assign(server, facts, {
    adminUrl: `ws://127.0.0.1:${adminPort}`,
    captureFolder: captureFolderOf(join(dir, 'janus')),
    log,
  });
}

/** Whether a Janus has a room. */
export async function hasMediaRoom(
  node: { listRooms(): Promise<readonly { roomId: string }[]> },
  roomId: string,
): Promise<boolean> {
  return (await node.listRooms()).some((room) => room.roomId === roomId);
}

/** Creates a directory under the system's temporary one that an unprivileged server can reach. */
export function temporaryDirectory(purpose: string): string {
  const dir = mkdtempSync(join(tmpdir(), `callplane-test-${purpose}-`));
  chmodSync(dir, 0o755);
  return dir;
}

/** Makes a server one of this test file: it ends with the file, and `dir` is deleted. */
export async function testServer(dir: string, begin: () => Promise<LocalServer>): Promise<TestServer> {
  let server: LocalServer;
  let frozen: number[] = [];
  const thaw = () => {
    for (const pid of frozen.splice(0)) signalIfAlive(pid, 'SIGCONT');
  };
  const halt = async () => {
    thaw();
    await server.stop();
  };
  const stop = async () => {
    await halt();
    rmSync(dir, { recursive: true, force: true });
  };
  const start = async () => {
    server = await begin();
  };
  try {
    await start();
    stopAtEnd(stop);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    get url() {
      return server.url;
    },
    get port() {
      return server.port;
    },
    get pid() {
      return server.pid;
    },
    kill: (signal) => signalIfAlive(server.pid, signal),
    start,
    restart: async () => {
      await halt();
      await start();
    },
    freeze: () => {
      // Freezes the parent first, so that it creates no more children.
      process.kill(server.pid, 'SIGSTOP');
      frozen = [server.pid, ...childrenOf(server.pid)];
      for (const pid of frozen) signalIfAlive(pid, 'SIGSTOP');
    },
    thaw,
    stop,
  };
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
