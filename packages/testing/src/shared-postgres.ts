import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  freePort,
  startPgBouncer,
  startPostgres,
  startWatchdog,
  type LocalServer,
  type PostgresServer,
} from '@callplane/local-servers';
import { GATEWAY } from './migrate.js';
import { createTemplate } from './test-database.js';
import { temporaryDirectory } from './test-servers.js';

/** Connections of all test files together: a few pools of ten in each of two workers, and those of spawned apps. */
const MAX_CONNECTIONS = 300;
const PASSWORD = 'test-postgres-password';
/** Sessions for each test database: tests with many transactions that wait for one another need one for each. */
const POOLED_SESSIONS = 30;

/**
 * Starts the run's PostgreSQL with its migrated template, and sets TEST_POSTGRES_URL for the test files. Servers that
 * belong to one file start from the copy of its data directory in TEST_POSTGRES_COPY: to initialise and migrate each took
 * 1.6 s of processor time (measured). Returns the function that stops it. Jest's global setup calls this, outside of any
 * test file. With TEST_DATABASE_POOLER=transaction, it also starts a PgBouncer for `connectionTo()`.
 */
export async function startSharedPostgres(): Promise<() => Promise<void>> {
  const dir = temporaryDirectory('shared-postgres');
  const watchdog = startWatchdog();
  const [dataDir, copy] = [join(dir, 'data'), join(dir, 'copy')];
  const port = await freePort();
  let server: PostgresServer | undefined;
  let pooler: LocalServer | undefined;
  const start = async () => {
    const settings = { password: PASSWORD, durable: false, maxConnections: MAX_CONNECTIONS };
    server = await startPostgres({ dataDir, port, ...settings });
    watchdog.watch(server.pid, 'INT');
    return server;
  };
  const stop = async () => {
    await pooler?.stop();
    await server?.stop();
    watchdog.release();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const first = await start();
    await createTemplate(first.adminUrl);
    await first.stop();
    watchdog.unwatch(first.pid);
    execFileSync('cp', ['-a', dataDir, copy]);
    const { adminUrl, pid } = await start();
    process.env['TEST_POSTGRES_URL'] = adminUrl;
    process.env['TEST_POSTGRES_PID'] = String(pid);
    process.env['TEST_POSTGRES_COPY'] = copy;
    if (process.env['TEST_DATABASE_POOLER'] === 'transaction') {
      pooler = await startPgBouncer({
        dir: join(dir, 'pgbouncer'),
        port: await freePort(),
        postgresPort: port,
        passwords: { postgres: PASSWORD, [GATEWAY.username]: GATEWAY.password },
        poolSize: POOLED_SESSIONS,
        clientsMax: 1000,
      });
      watchdog.watch(pooler.pid, 'TERM');
      process.env['TEST_POOLER_PORT'] = String(pooler.port);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
