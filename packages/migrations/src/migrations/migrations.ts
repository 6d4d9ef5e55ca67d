import type { MigrationList } from '@prisma/schema-engine-wasm/schema_engine_bg';
import { neededTransactionOffset, raiseTransactionOffset } from './after-restore.js';
import {
  connectionFields,
  withConnection,
  type ConnectionFields,
  type DatabaseTarget,
} from '../database/connection.js';
import { requireUtf8 } from '../database/encoding.js';
import { setTimeZone } from '../database/time-zone.js';
import { PRISMA_DIR, readPrismaFiles, writeMigration, type PrismaFiles } from './migration-files.js';
import { withMigrationLock } from '../database/migration-lock.js';
import { correctCounts, settleInterrupted, settleUnlocked } from '../database/migration-records.js';
import { LOCK_WAITS, LocksBusyError, type LockWaits, type ScriptOptions } from '../scripts/run-script.js';
import { withSchemaEngine } from '../schema-engine/schema-engine.js';

export interface MigrationTarget extends DatabaseTarget {
  /** Directory of `schema.prisma` and `migrations/`; the repository's `prisma/` by default. */
  readonly prismaDir?: string;
  /** Receives a line for the operator when a migration waits for locks, and before it builds or drops an index. */
  readonly report?: (line: string) => void;
  /** Tests set shorter ones. */
  readonly lockWaits?: LockWaits;
}

export interface MigrationDiff {
  /** Whether the migrations produce another schema than `schema.prisma`. */
  readonly drift: boolean;
  /** Statements that lead from the migrations to `schema.prisma`; empty without drift. */
  readonly sql: string;
}

const NO_FILTERS = { externalTables: [], externalEnums: [] };
/** The engine's exit code for a diff that is not empty. */
const EXIT_CODE_DIFFERENT = 2;
/** PostgreSQL: undefined_table. */
const UNDEFINED_TABLE = '42P01';

/**
 * Applies the pending migrations, each as one transaction or in steps, and returns their names. Several migrators may
 * run at once, in one process or in many: one applies, the others wait and find nothing left. Continues after a migrator
 * that was killed. Also corrects the transaction offset of a database that was restored into a younger cluster.
 * @throws MigrationError when a migration fails, when an earlier one failed and was not resolved, when other
 *   transactions hold the locks of a migration for too long, or when an empty database is not encoded in UTF8.
 */
export async function applyMigrations(target: MigrationTarget): Promise<string[]> {
  const files = await readPrismaFiles(target.prismaDir ?? PRISMA_DIR);
  const fields = await connectionFields(target);
  await requireUtf8(fields);
  const applied = await withMigrationLock(fields, async () => {
    await settleInterrupted(fields);
    const names = await applyPending(target, fields, files);
    if (names.length > 0) await correctCounts(fields);
    await setTimeZone(fields, target.report);
    return names;
  });
  // Checked without the lock, so that other migrators do not wait for this check.
  if ((await neededTransactionOffset(fields)) !== null) {
    await withMigrationLock(fields, () => raiseTransactionOffset(fields));
  }
  return applied;
}

async function applyPending(target: MigrationTarget, fields: ConnectionFields, files: PrismaFiles): Promise<string[]> {
  try {
    return await withSchemaEngine(fields, files, scriptOptions(target), async (engine) => {
      const input = { migrationsList: migrationList(files), filters: NO_FILTERS };
      return (await engine.applyMigrations(input)).appliedMigrationNames;
    });
  } catch (error) {
    if ((error as Error).cause instanceof LocksBusyError) await settleUnlocked(fields);
    throw error;
  }
}

function scriptOptions({ report, lockWaits }: MigrationTarget): ScriptOptions {
  return { lockWaits: lockWaits ?? LOCK_WAITS, report: report ?? (() => undefined) };
}

/**
 * Compares the result of the migrations with `schema.prisma`. Does not change the database at the URL: the migrations
 * run in a shadow database beside it, so the role needs CREATEDB.
 * @throws MigrationError
 */
export async function diffMigrations(target: MigrationTarget): Promise<MigrationDiff> {
  const files = await readPrismaFiles(target.prismaDir ?? PRISMA_DIR);
  const fields = await connectionFields(target);
  // Connects first, because node-postgres reports an unreachable database more clearly than the engine does.
  await withConnection(fields, () => Promise.resolve());
  return withSchemaEngine(fields, files, scriptOptions(target), async (engine) => {
    const result = await engine.diff({
      from: files.migrations.length === 0 ? { tag: 'empty' } : { tag: 'migrations', ...migrationList(files) },
      to: { tag: 'schemaDatamodel', files: [{ path: files.schemaPath, content: files.schema }] },
      script: true,
      exitCode: true,
      filters: NO_FILTERS,
    });
    const drift = result.exitCode === EXIT_CODE_DIFFERENT;
    return { drift, sql: drift ? (result.stdout ?? '') : '' };
  });
}

/**
 * Writes the diff of `diffMigrations` as a new migration. The author completes it by hand: the reason, the locks, and
 * anything that the schema language cannot express. Returns the path of its script, or null when there is no drift.
 * @param name lower-case words with underscores, `add_webhooks`.
 */
export async function createMigration(target: MigrationTarget & { name: string; now: Date }): Promise<string | null> {
  const { drift, sql } = await diffMigrations(target);
  if (!drift) return null;
  const timestamp = target.now.toISOString().replaceAll(/\D/g, '').slice(0, 14);
  return writeMigration(target.prismaDir ?? PRISMA_DIR, {
    name: `${timestamp}_${target.name}`,
    script: `-- Why:\n-- Locks:\n\n${sql}`,
  });
}

/**
 * Resolves a migration that failed halfway (for example because its process was killed), so that later ones can be
 * applied. `rolled-back`: the database has none of its changes, and it will be applied again. `applied`: the database
 * has all of them.
 * @throws MigrationError when that migration has not failed.
 */
export async function resolveMigration({
  name,
  outcome,
  ...target
}: MigrationTarget & { name: string; outcome: 'applied' | 'rolled-back' }): Promise<void> {
  const files = await readPrismaFiles(target.prismaDir ?? PRISMA_DIR);
  const fields = await connectionFields(target);
  await withMigrationLock(fields, () =>
    withSchemaEngine(fields, files, scriptOptions(target), async (engine) => {
      if (outcome === 'rolled-back') await engine.markMigrationRolledBack({ migrationName: name });
      else await engine.markMigrationApplied({ migrationName: name, migrationsList: migrationList(files) });
    }),
  );
}

/** Names of the migrations that the database does not have yet. Costs one connection and one cheap query. */
export async function pendingMigrations(target: MigrationTarget): Promise<string[]> {
  const { migrations } = await readPrismaFiles(target.prismaDir ?? PRISMA_DIR);
  const applied = await withConnection(await connectionFields(target), async (client) => {
    try {
      const { rows } = await client.query<{ migration_name: string }>(
        'SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
      );
      return new Set(rows.map((row) => row.migration_name));
    } catch (error) {
      if ((error as { code?: unknown }).code === UNDEFINED_TABLE) return new Set<string>();
      throw error;
    }
  });
  return migrations.map(({ name }) => name).filter((name) => !applied.has(name));
}

function migrationList(files: PrismaFiles): MigrationList {
  return {
    baseDir: files.migrationsDir,
    shadowDbInitScript: '',
    lockfile: { path: 'migration_lock.toml', content: files.lockFile },
    migrationDirectories: files.migrations.map(({ name, script }) => ({
      path: name,
      migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: script } },
    })),
  };
}
