import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { repositoryRoot } from './repository-root.js';

/** Stand-in until applyMigrations() of @callplane/db is there. */
export async function migrate(databaseUrl: string): Promise<void> {
  const migrations = join(repositoryRoot, 'prisma', 'migrations');
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (const entry of readdirSync(migrations, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.isDirectory()) await client.query(readFileSync(join(migrations, entry.name, 'migration.sql'), 'utf8'));
    }
  } finally {
    await client.end();
  }
}
