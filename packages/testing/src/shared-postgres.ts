import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPostgres, startWatchdog } from '@callplane/local-servers';
import { createTemplate } from './test-database.js';
import { temporaryDirectory } from './test-servers.js';

/** Connections of all test files together: a few pools of ten in each of two workers, and the apps that they spawn. */
const MAX_CONNECTIONS = 300;

/**
 * Starts the run's PostgreSQL and its migrated template; test files find it in TEST_POSTGRES_URL.
 * Returns what stops it. Called by Jest's global setup, outside of any test file.
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
  return stop;
}
