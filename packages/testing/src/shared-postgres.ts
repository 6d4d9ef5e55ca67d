import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPostgres, startWatchdog } from '@callplane/local-servers';
import { createTemplate } from './test-database.js';
import { temporaryDirectory } from './test-servers.js';

/** Connections of all test files together: a few pools of ten in each of two workers, and those of spawned apps. */
const MAX_CONNECTIONS = 300;

/**
 * Starts the run's PostgreSQL with its migrated template, and sets TEST_POSTGRES_URL for the test files. Returns the
 * function that stops it. Jest's global setup calls this, outside of any test file.
 */
export async function startSharedPostgres(): Promise<() => Promise<void>> {
  const dir = temporaryDirectory('shared-postgres');
  const watchdog = startWatchdog();
  const server = await startPostgres({
    dataDir: join(dir, 'data'),
    port: await freePort(),
    password: 'test-postgres-password',
    durable: false,
    maxConnections: MAX_CONNECTIONS,
  });
  watchdog.watch(server.pid, 'INT');
  const stop = async () => {
    await server.stop();
    watchdog.release();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await createTemplate(server.adminUrl);
  } catch (error) {
    await stop();
    throw error;
  }
  process.env['TEST_POSTGRES_URL'] = server.adminUrl;
  process.env['TEST_POSTGRES_PID'] = String(server.pid);
  return stop;
}
