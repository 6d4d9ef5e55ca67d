import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startPostgres, type PostgresServer } from '@callplane/local-servers';
import { repositoryRoot } from './resources.js';
import { createTemplate } from './test-database.js';
import { temporaryDirectory } from './test-servers.js';

/** Connections of all test files together: a few pools of ten in each of two workers, and the pools of spawned apps. */
const MAX_CONNECTIONS = 300;
const PASSWORD = 'test-postgres-password';
const SETTINGS = { password: PASSWORD, durable: false, maxConnections: MAX_CONNECTIONS };
/** The files that decide the content of a migrated data directory. */
const MIGRATION = [
  'pnpm-lock.yaml',
  'prisma/migrations',
  'packages/migrations/dist',
  'packages/testing/dist/test-database.js',
  'packages/testing/dist/shared-postgres.js',
];

/**
 * Starts the run's PostgreSQL with its migrated template, and sets TEST_POSTGRES_URL for the test files. It starts from
 * the data directory in TEST_POSTGRES_COPY, as do the servers that belong to one file. Returns the function that stops
 * it. Jest's global setup calls this, outside of any test file.
 */
export async function startSharedPostgres(): Promise<() => Promise<void>> {
  const dir = temporaryDirectory('shared-postgres');
  const dataDir = join(dir, 'data');
  const port = await freePort();
  let server: PostgresServer | undefined;
  const stop = async () => {
    await server?.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const copy = await migratedData(dir);
    execFileSync('cp', ['-a', copy, dataDir]);
    server = await startPostgres({ dataDir, port, ...SETTINGS });
    process.env['TEST_POSTGRES_URL'] = server.adminUrl;
    process.env['TEST_POSTGRES_COPY'] = copy;
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/**
 * The data directory of a PostgreSQL with the migrated template. Kept from run to run, because to initialise and migrate
 * one takes 1.6 s of processor time (measured).
 */
async function migratedData(scratch: string): Promise<string> {
  const hash = createHash('sha256');
  for (const name of MIGRATION) {
    for (const file of filesOf(join(repositoryRoot, name))) hash.update(readFileSync(file));
  }
  const folder = join(repositoryRoot, 'node_modules', '.cache', 'test-postgres');
  const kept = join(folder, hash.digest('hex').slice(0, 16));
  if (existsSync(kept)) return kept;
  // Data directories of earlier migrations take 70 MB each.
  rmSync(folder, { recursive: true, force: true });
  const dataDir = join(scratch, 'migrated');
  const server = await startPostgres({ dataDir, port: await freePort(), ...SETTINGS });
  try {
    await createTemplate(server.adminUrl);
  } finally {
    await server.stop();
  }
  mkdirSync(folder, { recursive: true });
  const draft = `${kept}.${process.pid}`;
  execFileSync('cp', ['-a', dataDir, draft]);
  // Another run may have been faster. Its directory has the same content.
  if (existsSync(kept)) rmSync(draft, { recursive: true });
  else renameSync(draft, kept);
  return kept;
}

function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
