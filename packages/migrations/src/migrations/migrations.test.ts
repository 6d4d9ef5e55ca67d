import { createHash, randomBytes } from 'node:crypto';
import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@callplane/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { PRISMA_DIR } from './migration-files.js';
import { applyMigrations, createMigration, diffMigrations, pendingMigrations, resolveMigration } from './migrations.js';

const adminUrl = process.env['TEST_POSTGRES_URL']!;
const shipped = (await readdir(join(PRISMA_DIR, 'migrations'), { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();

let admin: pg.Client;
/** URL of an empty database. */
let databaseUrl: string;
/** A copy of prisma/ that a test may change. */
let prismaDir: string;

beforeAll(async () => {
  admin = new pg.Client(adminUrl);
  await admin.connect();
});
afterAll(() => admin.end());

beforeEach(async () => {
  const name = `empty_${randomBytes(8).toString('hex')}`;
  await admin.query(`CREATE DATABASE ${name}`);
  databaseUrl = urlOf({ database: name });
  prismaDir = await mkdtemp(join(tmpdir(), 'callplane-test-prisma-'));
  await cp(PRISMA_DIR, prismaDir, { recursive: true });
});
afterEach(async () => {
  await rm(prismaDir, { recursive: true });
  await admin.query(`DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`);
});

describe('applyMigrations', () => {
  test('lets one of several concurrent migrators apply each migration once with its checksum, and all succeed', async () => {
    const applied = await Promise.all(Array.from({ length: 4 }, () => applyMigrations({ databaseUrl })));
    expect(applied.flat()).toEqual(shipped);

    const rows = await query('SELECT migration_name, checksum FROM _prisma_migrations ORDER BY migration_name');
    const expected = shipped.map(async (name) => ({
      migration_name: name,
      checksum: createHash('sha256')
        .update(await readFile(join(PRISMA_DIR, 'migrations', name, 'migration.sql')))
        .digest('hex'),
    }));
    expect(rows).toEqual(await Promise.all(expected));
    expect(await applyMigrations({ databaseUrl })).toEqual([]);
  });

  test('refuses an empty database that does not store text as UTF-8', async () => {
    const name = new URL(databaseUrl).pathname.slice(1);
    await admin.query(`DROP DATABASE ${name}`);
    await admin.query(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`);
    await expect(applyMigrations({ databaseUrl })).rejects.toThrow('The encoding of the database is SQL_ASCII.');
    expect(await query(`SELECT to_regclass('rooms') AS rooms`)).toEqual([{ rooms: null }]);
  });

  test('waits for a migrator of another process', async () => {
    const other = new pg.Client(databaseUrl);
    await other.connect();
    await other.query('SELECT pg_advisory_lock($1)', [0x63616c6c]);
    let done = false;
    const applying = applyMigrations({ databaseUrl }).then((applied) => {
      done = true;
      return applied;
    });
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(done).toBe(false);
    expect(await query("SELECT to_regclass('_prisma_migrations') AS found")).toEqual([{ found: null }]);
    await other.end();
    expect(await applying).toEqual(shipped);
  });

  test('leaves no connection open', async () => {
    await applyMigrations({ databaseUrl });
    const { pathname } = new URL(databaseUrl);
    // PostgreSQL ends the process of a closed connection a moment later, and autovacuum may visit the database.
    await eventually(async () => {
      const { rows } = await admin.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'",
        [pathname.slice(1)],
      );
      return rows.length === 0;
    });
  });

  test('leaves nothing of a failed migration behind, and applies no other until it is resolved', async () => {
    await applyMigrations({ databaseUrl });
    const name = '20900101000000_half';
    await addMigration(name, "CREATE TABLE half (text text DEFAULT ';');\nSELECT 1 / 0;");
    await expect(applyMigrations({ databaseUrl, prismaDir })).rejects.toThrow(`Migration ${name} failed:`);
    expect(await query("SELECT to_regclass('half') AS found")).toEqual([{ found: null }]);
    await expect(applyMigrations({ databaseUrl, prismaDir })).rejects.toThrow(`"rtc db resolve ${name} --rolled-back"`);

    await addMigration(name, "CREATE TABLE half (text text DEFAULT ';');");
    await resolveMigration({ databaseUrl, prismaDir, name, outcome: 'rolled-back' });
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([name]);
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([name]);
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([]);
  });

  test('accepts a URL with escaped characters and with parameters of Prisma', async () => {
    const password = 'p:@/?#% é';
    const role = `röle @${randomBytes(4).toString('hex')}`;
    const database = new URL(databaseUrl).pathname.slice(1);
    await admin.query(`CREATE ROLE "${role}" LOGIN PASSWORD '${password}'`);
    await admin.query(`ALTER DATABASE ${database} OWNER TO "${role}"`);
    const url = `${urlOf({ database, user: role, password })}?schema=public`;
    expect(await applyMigrations({ databaseUrl: url })).toEqual(shipped);
    expect(await pendingMigrations({ databaseUrl: url })).toEqual([]);
    // This role may not create the shadow database, and the error says so.
    await expect(diffMigrations({ databaseUrl: url })).rejects.toThrow('permission denied to create database');
  });
});

test('keeps events of an older cluster visible and in order after a restore, and sorts new ones behind them', async () => {
  await applyMigrations({ databaseUrl });
  await query(`INSERT INTO projects (id, name, created_at) VALUES ('proj', 'p', now())`);
  await query(`INSERT INTO environments (id, project_id, name, created_at) VALUES ('env', 'proj', 'e', now())`);
  const write = (id: string, columns = '', values = '') =>
    query(`INSERT INTO events (id, environment_id, type, body, created_at${columns})
      VALUES ('${id}', 'env', 'webhook.test', '{}', now()${values})`);
  const listed = async () =>
    (
      await query(`SELECT id FROM events
        WHERE transaction_id < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint + callplane_transaction_offset()
        ORDER BY transaction_id, id`)
    ).map((row) => (row as { id: string }).id);
  await write('evt_1');
  await applyMigrations({ databaseUrl });
  expect(await query('SELECT callplane_transaction_offset()::text AS at')).toEqual([{ at: '0' }]);
  // Rows as in a dump of a cluster with higher transaction ids.
  await write('evt_2', ', transaction_id', ', 900000000000');
  await write('evt_3', ', transaction_id', ', 900000000001');
  expect(await listed()).toEqual(['evt_1']);
  await applyMigrations({ databaseUrl });
  await write('evt_4');
  expect(await listed()).toEqual(['evt_1', 'evt_2', 'evt_3', 'evt_4']);
  // Raising the offset once is enough, also when a dump of this database is restored again.
  const offset = await query('SELECT callplane_transaction_offset() AS at');
  await applyMigrations({ databaseUrl });
  expect(await query('SELECT callplane_transaction_offset() AS at')).toEqual(offset);
});

test('pendingMigrations returns the migrations that the database lacks', async () => {
  expect(await pendingMigrations({ databaseUrl })).toEqual(shipped);
  await applyMigrations({ databaseUrl });
  await addMigration('20900101000000_next', 'SELECT 1;');
  expect(await pendingMigrations({ databaseUrl })).toEqual([]);
  expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual(['20900101000000_next']);
});

describe('diffMigrations', () => {
  test('finds no drift between the migrations of this repository and its schema.prisma', async () => {
    expect(await diffMigrations({ databaseUrl })).toEqual({ drift: false, sql: '' });
  });

  test('finds a difference without changing the database, and createMigration writes it', async () => {
    await appendFile(join(prismaDir, 'schema.prisma'), '\nmodel Extra {\n  id String @id\n\n  @@map("extras")\n}\n');
    const { drift, sql } = await diffMigrations({ databaseUrl, prismaDir });
    expect(drift).toBe(true);
    expect(sql).toContain('CREATE TABLE "extras"');
    expect(await query("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")).toEqual([]);

    const now = new Date('2090-01-02T03:04:05.678Z');
    const path = await createMigration({ databaseUrl, prismaDir, name: 'add_extras', now });
    expect(path).toBe(join(prismaDir, 'migrations', '20900102030405_add_extras', 'migration.sql'));
    expect(await createMigration({ databaseUrl, prismaDir, name: 'add_extras', now })).toBeNull();
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([...shipped, '20900102030405_add_extras']);
  });

  test('finds a schema that lacks an index of the migrations', async () => {
    const schema = await readFile(join(prismaDir, 'schema.prisma'), 'utf8');
    await writeFile(join(prismaDir, 'schema.prisma'), schema.replaceAll('@@index([expiresAt])\n', ''));
    expect(await diffMigrations({ databaseUrl, prismaDir })).toMatchObject({
      drift: true,
      sql: expect.stringContaining('DROP INDEX "idempotency_records_expires_at_idx"'),
    });
  });

  test('removes its shadow database, also when a migration fails', async () => {
    await addMigration('20900101000000_bad', 'SELECT 1 / 0;');
    await expect(diffMigrations({ databaseUrl, prismaDir })).rejects.toThrow(/20900101000000_bad.*division by zero/);
    // Another test file may have a shadow database at this moment.
    await eventually(async () => {
      const { rows } = await admin.query("SELECT 1 FROM pg_database WHERE datname LIKE 'prisma_migrate_shadow%'");
      return rows.length === 0;
    });
  });
});

function urlOf({ database, user, password }: { database: string; user?: string; password?: string }): string {
  const url = new URL(adminUrl);
  if (user !== undefined) url.username = encodeURIComponent(user);
  if (password !== undefined) url.password = encodeURIComponent(password);
  url.pathname = `/${database}`;
  return url.href;
}

async function addMigration(name: string, script: string): Promise<void> {
  const directory = join(prismaDir, 'migrations', name);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'migration.sql'), script);
}

async function query(statement: string): Promise<unknown[]> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
