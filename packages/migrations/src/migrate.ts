import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { encodingProblem, raiseTransactionOffset, setSessionSettings } from './checks.js';
import { connectionFields, withConnection, withMigrationLock, type DatabaseTarget } from './connection.js';

/** How a migration waits for the locks of its tables, in milliseconds. */
interface LockWaits {
  /** Until PostgreSQL gives up waiting for a lock. No request waits longer behind a migration. */
  readonly timeoutMs: number;
  /** Pause before the next attempt, in which requests use the table again. */
  readonly pauseMs: number;
  /** From the first attempt that found busy locks until the migration fails. */
  readonly waitMsMax: number;
}

const LOCK_WAITS: LockWaits = { timeoutMs: 2000, pauseMs: 3000, waitMsMax: 10 * 60_000 };

export interface MigrationTarget extends DatabaseTarget {
  /** Directory of `migrations/`; the repository's `prisma/` by default. */
  readonly prismaDir?: string;
  /** Receives a line for the operator when a migration waits for locks, and before a concurrent statement. */
  readonly report?: (line: string) => void;
  readonly lockWaits?: LockWaits;
}

/** The message tells the operator why a migration is not applied. The database has no change of it. */
export class MigrationError extends Error {}

interface Migration {
  /** Name of its directory. Migrations are applied in the order of their names. */
  readonly name: string;
  readonly script: string;
}

/** `prisma/` at the top of the repository, three levels above this file in both src/ and dist/. */
const PRISMA_DIR = resolve(import.meta.dirname, '..', '..', '..', 'prisma');

/** Prisma's table with its columns, so that Prisma's own tools can read it. */
const CREATE_RECORDS = `CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz, migration_name varchar(255) NOT NULL,
  logs text, rolled_back_at timestamptz, started_at timestamptz NOT NULL DEFAULT now(),
  applied_steps_count integer NOT NULL DEFAULT 0)`;

/** PostgreSQL: undefined_table. */
const UNDEFINED_TABLE = '42P01';
/** PostgreSQL: lock_not_available, deadlock_detected. */
const LOCKS_BUSY = new Set(['55P03', '40P01']);
/** Interval at which PostgreSQL checks that the migrator still runs, in milliseconds. */
const CLIENT_CHECK_MS = 1000;

/**
 * Applies the pending migrations and returns their names. Several migrators may run at once, in one process or in many:
 * one applies, the others wait and find nothing left. A migrator that is killed leaves nothing to repair. Also sets the
 * settings of the database, and corrects the transaction offset after a restore.
 * @throws MigrationError when a migration fails, when other transactions hold its locks for too long, or when the
 *   database is not encoded in UTF8.
 */
export async function applyMigrations(target: MigrationTarget): Promise<string[]> {
  const migrations = await readMigrations(target);
  const report = target.report ?? (() => undefined);
  return withMigrationLock(await connectionFields(target), async (client) => {
    const problem = await encodingProblem(client);
    if (problem !== null) throw new MigrationError(problem);
    await client.query('SET statement_timeout = 0; SET lock_timeout = 0; SET search_path = public');
    await client.query("SET default_transaction_isolation = 'read committed'");
    await client.query(CREATE_RECORDS);
    // PostgreSQL soon ends the session of a killed migrator that waits. Not every platform supports this setting.
    await client.query(`SET client_connection_check_interval = ${CLIENT_CHECK_MS}`).catch(() => undefined);
    const pending = withoutApplied(migrations, await appliedNames(client));
    for (const migration of pending) {
      await apply(client, migration, target.lockWaits ?? LOCK_WAITS, (line) => report(`${migration.name}: ${line}`));
    }
    await setSessionSettings(client, report);
    await raiseTransactionOffset(client);
    return pending.map(({ name }) => name);
  });
}

export async function pendingMigrations(target: MigrationTarget): Promise<string[]> {
  const migrations = await readMigrations(target);
  const applied = await withConnection(await connectionFields(target), appliedNames);
  return withoutApplied(migrations, applied).map(({ name }) => name);
}

async function readMigrations({ prismaDir = PRISMA_DIR }: MigrationTarget): Promise<Migration[]> {
  const directory = join(prismaDir, 'migrations');
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names
      .sort()
      .map(async (name) => ({ name, script: await readFile(join(directory, name, 'migration.sql'), 'utf8') })),
  );
}

async function appliedNames(client: pg.Client): Promise<Set<string>> {
  try {
    const { rows } = await client.query<{ name: string }>(
      'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
    );
    return new Set(rows.map(({ name }) => name));
  } catch (error) {
    if ((error as { code?: unknown }).code === UNDEFINED_TABLE) return new Set();
    throw error;
  }
}

function withoutApplied(migrations: readonly Migration[], applied: ReadonlySet<string>): Migration[] {
  return migrations.filter(({ name }) => !applied.has(name));
}

async function apply(
  client: pg.Client,
  migration: Migration,
  waits: LockWaits,
  report: (line: string) => void,
): Promise<void> {
  const index = concurrentIndex(migration.script);
  // Not the start of the first attempt: PostgreSQL may build an index for an hour before a deadlock ends it.
  let busySinceMs: number | undefined;
  for (;;) {
    try {
      if (index === null) await runTransaction(client, migration, waits.timeoutMs);
      else await runConcurrently(client, migration, index, report);
      return;
    } catch (error) {
      const { code, message } = error as pg.DatabaseError;
      if (!LOCKS_BUSY.has(code ?? '')) {
        throw new MigrationError(`Migration ${migration.name} failed: ${message}`, { cause: error });
      }
      const nowMs = performance.now();
      busySinceMs ??= nowMs;
      const oldest = await oldestTransaction(client);
      if (nowMs - busySinceMs + waits.pauseMs >= waits.waitMsMax) {
        const minutes = waits.waitMsMax / 60_000;
        throw new MigrationError(
          `Migration ${migration.name} is not applied: other transactions have held its locks for ${minutes} minutes` +
            `${oldest}. End them, or run "rtc db migrate" again later.`,
          { cause: error },
        );
      }
      report(`its tables are locked${oldest}; tries again`);
      await delay(waits.pauseMs);
    }
  }
}

/**
 * The index that a script builds or drops outside of a transaction; null if the script runs in one. Such a script is one
 * statement, and contains IF EXISTS or IF NOT EXISTS, so that it can be repeated.
 */
function concurrentIndex(script: string): string | null {
  const sql = script.replaceAll(/--.*$/gm, '');
  return /\bINDEX\s+CONCURRENTLY\s+IF\s+(?:NOT\s+)?EXISTS\s+"?(\w+)/i.exec(sql)?.[1] ?? null;
}

/** One message from the first lock to the commit, so that a migrator that stands still holds no lock. */
async function runTransaction(client: pg.Client, migration: Migration, lockTimeoutMs: number): Promise<void> {
  try {
    await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs};
      ${migration.script}\n;${recordOf(migration)}; COMMIT`);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** A concurrent statement waits for older transactions, but no request waits for it. */
async function runConcurrently(
  client: pg.Client,
  migration: Migration,
  index: string,
  report: (line: string) => void,
): Promise<void> {
  // A build that was killed or failed leaves an invalid index, which IF NOT EXISTS would keep.
  const invalid = 'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid';
  if ((await client.query(invalid, [index])).rowCount !== 0) {
    report(`drops the invalid index ${index}`);
    await client.query(`DROP INDEX CONCURRENTLY ${index}`);
  }
  report(`builds or drops the index ${index}`);
  await client.query(migration.script);
  await client.query(recordOf(migration));
}

function recordOf({ name, script }: Migration): string {
  const checksum = createHash('sha256').update(script).digest('hex');
  return `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
    VALUES (gen_random_uuid(), '${checksum}', ${pg.escapeLiteral(name)}, clock_timestamp(), 1)`;
}

async function oldestTransaction(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number; application: string; state: string; seconds: number }>(
    `SELECT pid, application_name AS application, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start)::int AS seconds
     FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
     ORDER BY xact_start LIMIT 1`,
  );
  const [oldest] = rows;
  if (oldest === undefined) return '';
  const { pid, application, state, seconds } = oldest;
  return `; process ${pid} has the oldest transaction (${application || 'no name'}, ${state}), for ${seconds} s`;
}
