import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** `prisma/` at the top of the repository, four levels above this file in both src/ and dist/. */
export const PRISMA_DIR = resolve(import.meta.dirname, '..', '..', '..', '..', 'prisma');

const LOCK_FILE = 'migration_lock.toml';
const SCRIPT_FILE = 'migration.sql';

export interface Migration {
  /**
   * Name of its directory, such as `20261120000000_rest_contract`. Migrations are applied in the order of their names.
   */
  readonly name: string;
  readonly script: string;
}

export interface PrismaFiles {
  readonly schemaPath: string;
  readonly schema: string;
  readonly migrationsDir: string;
  /** Content of `migration_lock.toml`, which names the database product; null when the file is missing. */
  readonly lockFile: string | null;
  readonly migrations: readonly Migration[];
}

/** Reads the schema and the migrations, in the order in which they are applied. */
export async function readPrismaFiles(prismaDir: string): Promise<PrismaFiles> {
  const schemaPath = join(prismaDir, 'schema.prisma');
  const migrationsDir = join(prismaDir, 'migrations');
  return {
    schemaPath,
    schema: await readFile(schemaPath, 'utf8'),
    migrationsDir,
    lockFile: await readOptional(join(migrationsDir, LOCK_FILE)),
    migrations: await readMigrations(migrationsDir),
  };
}

/** Writes a migration and returns the path of its script. Fails when a migration of that name exists. */
export async function writeMigration(prismaDir: string, migration: Migration): Promise<string> {
  const directory = join(prismaDir, 'migrations', migration.name);
  await mkdir(directory);
  const path = join(directory, SCRIPT_FILE);
  await writeFile(path, migration.script);
  return path;
}

async function readMigrations(migrationsDir: string): Promise<Migration[]> {
  const entries = await readdir(migrationsDir, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return Promise.all(
    names
      .sort()
      .map(async (name) => ({ name, script: await readFile(join(migrationsDir, name, SCRIPT_FILE), 'utf8') })),
  );
}

async function readOptional(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
