import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { appMain, eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { applyMigrations, pendingMigrations } from './migrate.js';

const adminUrl = process.env['TEST_POSTGRES_URL']!;
const PRISMA_DIR = join(repositoryRoot, 'prisma');
const shipped = (await readdir(join(PRISMA_DIR, 'migrations'), { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();
const NEXT = '20900101000000_next';
const WAITS = { timeoutMs: 300, pauseMs: 100, waitMsMax: 600_000 };
/** The session of a migrator that waits for an older transaction. */
const BUILDER = `FROM pg_stat_activity
  WHERE datname = current_database() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'`;
/** The session of a migrator that waits for a lock. */
const BLOCKED = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

let admin: pg.Client;
/** URL of an empty database. */
let databaseUrl: string;
/** Sends requests of an app. */
let app: pg.Client;
/** Holds a transaction open during the test. */
let reader: pg.Client;

beforeAll(async () => {
  admin = new pg.Client(adminUrl);
  await admin.connect();
});
afterAll(() => admin.end());

beforeEach(async () => {
  const name = `empty_${randomBytes(8).toString('hex')}`;
  await admin.query(`CREATE DATABASE ${name}`);
  databaseUrl = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
  [app, reader] = [new pg.Client(databaseUrl), new pg.Client(databaseUrl)];
  await Promise.all([app.connect(), reader.connect()]);
});
afterEach(async () => {
  await Promise.all([app.end(), reader.end()]);
  await admin.query(`DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`);
});

describe('applyMigrations', () => {
  test('lets one of several concurrent migrators apply each migration once with its checksum, and all succeed', async () => {
    const applied = await Promise.all(Array.from({ length: 4 }, () => applyMigrations({ databaseUrl })));
    expect(applied.flat()).toEqual(shipped);
    const { rows } = await app.query(`SELECT migration_name, checksum, applied_steps_count AS count,
      finished_at IS NOT NULL AND rolled_back_at IS NULL AND logs IS NULL AS finished
      FROM _prisma_migrations ORDER BY migration_name`);
    const expected = shipped.map(async (name) => ({
      migration_name: name,
      checksum: createHash('sha256')
        .update(await readFile(join(PRISMA_DIR, 'migrations', name, 'migration.sql')))
        .digest('hex'),
      count: 1,
      finished: true,
    }));
    expect(rows).toEqual(await Promise.all(expected));
    expect(await applyMigrations({ databaseUrl })).toEqual([]);
  });

  test('waits for a migrator of another process without holding a snapshot', async () => {
    await reader.query('SELECT pg_advisory_lock($1)', [0x63616c6c]);
    const applying = applyMigrations({ databaseUrl });
    const polls = `FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND state = 'idle' AND query LIKE 'SELECT pg_try_advisory_lock%' AND backend_xmin IS NULL`;
    await eventually(() => found(polls));
    expect(await pendingMigrations({ databaseUrl })).toEqual(shipped);
    await reader.query('SELECT pg_advisory_unlock_all()');
    expect(await applying).toEqual(shipped);
  });

  test('leaves nothing of a failed migration behind, and applies it once it is corrected', async () => {
    const failing = await withMigration("CREATE TABLE half (text text DEFAULT ';');\nSELECT 1 / 0;");
    await expect(applyMigrations({ databaseUrl, prismaDir: failing })).rejects.toThrow(
      `Migration ${NEXT} failed: division by zero`,
    );
    expect(await found(`FROM pg_class WHERE relname = 'half'`)).toBe(false);
    const prismaDir = await withMigration("CREATE TABLE half (text text DEFAULT ';') -- without a semicolon");
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([]);
  });
});

describe('a migration in one transaction', () => {
  const script = 'CREATE TABLE other (); ALTER TABLE calls ADD COLUMN n int;';
  beforeEach(async () => {
    await applyMigrations({ databaseUrl });
    await app.query('CREATE TABLE calls (id int); INSERT INTO calls VALUES (1), (2)');
  });

  test('lets requests pass behind a long reader, and completes after the reader ends', async () => {
    const prismaDir = await withMigration(script);
    const reported: string[] = [];
    await reader.query('BEGIN; SELECT FROM calls');
    const report = (line: string) => reported.push(line);
    const migrating = applyMigrations({ databaseUrl, prismaDir, lockWaits: WAITS, report });
    await eventually(() => found(BLOCKED));
    // Without a timeout these requests would wait behind the migration until the reader ends.
    await app.query('SELECT FROM calls');
    await app.query('INSERT INTO calls VALUES (3)');
    await eventually(() => reported.length >= 2);
    const { rows } = await reader.query('SELECT pg_backend_pid() AS pid');
    const { pid } = rows[0];
    expect(reported[0]).toContain(`${NEXT}: its tables are locked; process ${pid} has the oldest transaction`);
    await reader.query('COMMIT');
    expect(await migrating).toEqual([NEXT]);
    expect((await app.query('SELECT n FROM calls')).rowCount).toBe(3);
  });

  test('fails without a change when its locks stay busy, and is applied later', async () => {
    const prismaDir = await withMigration(script);
    await reader.query('BEGIN; SELECT FROM calls');
    const lockWaits = { ...WAITS, waitMsMax: 60 };
    await expect(applyMigrations({ databaseUrl, prismaDir, lockWaits })).rejects.toThrow(
      `Migration ${NEXT} is not applied: other transactions have held its locks`,
    );
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    await reader.query('COMMIT');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
  });

  test('leaves nothing of a migrator that was killed before the commit', async () => {
    const prismaDir = await withMigration(script);
    await reader.query('BEGIN; SELECT FROM calls');
    await killedMigrator(prismaDir, BLOCKED);
    // PostgreSQL ends the session of the killed process by itself.
    await eventually(async () => !(await found(BLOCKED)));
    await reader.query('COMMIT');
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect((await app.query('SELECT n FROM calls')).rowCount).toBe(2);
  });
});

describe('a migration outside of a transaction', () => {
  const script = '-- Why: so.\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS calls_idx ON calls (id);\n';
  beforeEach(async () => {
    await applyMigrations({ databaseUrl });
    await app.query('CREATE TABLE calls (id int); INSERT INTO calls VALUES (1), (2)');
  });

  test('builds an index while an old transaction is open and requests read and write', async () => {
    const prismaDir = await withMigration(script);
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM calls');
    const migrating = applyMigrations({ databaseUrl, prismaDir });
    await eventually(() => found(BUILDER));
    await app.query('SELECT FROM calls');
    await app.query('INSERT INTO calls VALUES (3)');
    await reader.query('COMMIT');
    expect(await migrating).toEqual([NEXT]);
    expect(await isValid()).toBe(true);
  });

  test('builds an index anew that a failed build has left', async () => {
    const prismaDir = await withMigration(script);
    await app.query('INSERT INTO calls VALUES (1)');
    await expect(applyMigrations({ databaseUrl, prismaDir })).rejects.toThrow('could not create unique index');
    expect(await isValid()).toBe(false);
    await app.query('DELETE FROM calls');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await isValid()).toBe(true);
  });

  test('is repeated after a migrator was killed while it built the index', async () => {
    const prismaDir = await withMigration(script);
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM calls');
    await killedMigrator(prismaDir, BUILDER);
    // PostgreSQL ends the session of the killed process by itself.
    await eventually(async () => !(await found(BUILDER)));
    expect(await isValid()).toBe(false);
    await reader.query('COMMIT');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await isValid()).toBe(true);
  });

  test.each([
    ['built', script, 'CREATE UNIQUE INDEX calls_idx ON calls (id)', true],
    ['dropped', 'DROP INDEX CONCURRENTLY IF EXISTS "calls_idx";', 'SELECT 1', null],
  ])('is applied after a migrator was killed once the index was %s', async (_, repeated, before, valid) => {
    const prismaDir = await withMigration(repeated);
    await app.query(before);
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await isValid()).toBe(valid);
  });

  test.each([
    'CREATE INDEX CONCURRENTLY calls_idx ON calls (id);',
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS calls_idx ON calls (id); CREATE TABLE other ();',
  ])('is refused if it cannot be repeated: %s', async (refused) => {
    const prismaDir = await withMigration(refused);
    await expect(applyMigrations({ databaseUrl, prismaDir })).rejects.toThrow('cannot run inside a transaction block');
    expect(await isValid()).toBeNull();
  });
});

/** Whether a statement finds a row. */
async function found(from: string): Promise<boolean> {
  return (await app.query(`SELECT 1 ${from}`)).rowCount !== 0;
}

async function isValid(): Promise<boolean | null> {
  const statement = `SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('calls_idx')`;
  return (await app.query<{ valid: boolean }>(statement)).rows[0]?.valid ?? null;
}

/** A copy of prisma/ with one more migration. */
async function withMigration(script: string): Promise<string> {
  const prismaDir = temporaryDirectory('prisma');
  await cp(PRISMA_DIR, prismaDir, { recursive: true });
  await mkdir(join(prismaDir, 'migrations', NEXT));
  await writeFile(join(prismaDir, 'migrations', NEXT, 'migration.sql'), script);
  return prismaDir;
}

/** Starts `rtc db migrate`, and kills it once a session is found. */
async function killedMigrator(prismaDir: string, session: string): Promise<void> {
  const child = spawn(process.execPath, [appMain('cli'), 'db', 'migrate'], {
    env: { DATABASE_URL: databaseUrl, PRISMA_DIR: prismaDir },
    stdio: 'ignore',
  });
  const closed = once(child, 'close');
  await eventually(() => found(session), { timeoutMs: 60_000 });
  child.kill('SIGKILL');
  await closed;
}
