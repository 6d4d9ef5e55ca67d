import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { appMain, createTestDatabase, eventually, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { connectionFields, withConnection } from '../database/connection.js';
import { PRISMA_DIR } from '../migrations/migration-files.js';
import { applyMigrations, pendingMigrations } from '../migrations/migrations.js';
import { LocksBusyError, runScript, type LockWaits } from './run-script.js';
import { statementsOf } from './statements.js';
import { stepsOf } from './steps.js';

const WAITS: LockWaits = { timeoutMs: 300, pauseMs: 100, waitMsMax: 600_000 };
const NEXT = '20900101000000_next';

let databaseUrl: string;
let migrator: pg.Client;
/** Holds a transaction open during the test. */
let reader: pg.Client;
/** Sends requests of an app. */
let app: pg.Client;
let reported: string[];

beforeAll(async () => {
  databaseUrl = (await createTestDatabase()).url;
  [migrator, reader, app] = await Promise.all([connected(), connected(), connected()]);
});
beforeEach(async () => {
  reported = [];
  await app.query('CREATE TABLE calls (id int, name text); INSERT INTO calls VALUES (1), (2)');
});
afterEach(async () => {
  await reader.query('ROLLBACK');
  await app.query('DROP TABLE calls');
});

describe('a migration in one transaction', () => {
  test('lets requests go on behind a long reader, and completes after the reader ends', async () => {
    await reader.query('BEGIN; SELECT FROM calls');
    const migrating = run('ALTER TABLE calls ADD COLUMN n int');
    await eventually(async () => (await migratorState()).wait_event_type === 'Lock');
    // Without a timeout these requests would wait behind the migration until the reader ends.
    await app.query('SELECT FROM calls');
    await app.query('INSERT INTO calls VALUES (3)');
    await eventually(() => reported.length >= 2);
    const { rows } = await reader.query('SELECT pg_backend_pid() AS pid');
    expect(reported[0]).toContain(
      `test: its tables are locked; the oldest transaction is that of process ${rows[0].pid}`,
    );
    await reader.query('COMMIT');
    await migrating;
    expect((await app.query('SELECT n FROM calls')).rowCount).toBe(3);
  });

  test('fails without a change when its locks stay busy', async () => {
    await reader.query('BEGIN; SELECT FROM calls');
    const migrating = run('CREATE TABLE other (); ALTER TABLE calls ADD COLUMN n int', { ...WAITS, waitMsMax: 60 });
    await expect(migrating).rejects.toThrow(LocksBusyError);
    expect((await app.query(`SELECT to_regclass('other') AS found`)).rows).toEqual([{ found: null }]);
  });

  test('leaves no transaction open after an error', async () => {
    await expect(run('ALTER TABLE calls ADD COLUMN n int; SELECT 1 / 0;')).rejects.toThrow('division by zero');
    expect(await migratorState()).toMatchObject({ state: 'idle' });
    await app.query('ALTER TABLE calls ADD COLUMN n text');
  });
});

describe('a migration in steps', () => {
  test('builds an index while an old transaction is open and requests read and write', async () => {
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM calls');
    const migrating = run('CREATE INDEX CONCURRENTLY calls_idx ON calls (id);');
    await eventually(async () => (await migratorState()).wait_event === 'virtualxid');
    await app.query('SELECT FROM calls');
    await app.query('INSERT INTO calls VALUES (3)');
    await reader.query('COMMIT');
    await migrating;
    expect(await isValid('calls_idx')).toBe(true);
    expect(reported).toEqual(['test: builds the index calls_idx']);
  });

  test('builds an index anew that a failed build has left, and keeps a valid one', async () => {
    await app.query('INSERT INTO calls VALUES (1)');
    const script = 'CREATE UNIQUE INDEX CONCURRENTLY "calls_idx" ON calls (id);';
    await expect(run(script)).rejects.toThrow('could not create unique index');
    expect(await isValid('calls_idx')).toBe(false);
    await app.query('DELETE FROM calls');
    await run(script);
    expect(await isValid('calls_idx')).toBe(true);
    reported = [];
    await run(script);
    expect(reported).toEqual([]);
  });

  test('drops indexes and validates constraints, and can be repeated', async () => {
    await app.query(
      'CREATE INDEX calls_idx ON calls (id); ALTER TABLE calls ADD CONSTRAINT c CHECK (id > 0) NOT VALID',
    );
    const script = 'DROP INDEX CONCURRENTLY calls_idx; ALTER TABLE calls VALIDATE CONSTRAINT c;';
    await run(script);
    await run(script);
    expect(await isValid('calls_idx')).toBeNull();
    const { rows } = await app.query(`SELECT convalidated FROM pg_constraint WHERE conname = 'c'`);
    expect(rows).toEqual([{ convalidated: true }]);
  });

  test('are tried again after a deadlock, however long the step ran before it', async () => {
    let attempts = 0;
    const client = {
      query: async (statement: string) => {
        if (!statement.startsWith('ALTER TABLE')) return { rows: [] };
        attempts += 1;
        if (attempts > 1) return { rows: [] };
        await delay(60);
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
      },
    };
    const lockWaits = { timeoutMs: 1, pauseMs: 1, waitMsMax: 50 };
    const script = 'ALTER TABLE calls VALIDATE CONSTRAINT c;';
    await runScript(client as unknown as pg.Client, { name: 'test', script }, { lockWaits, report: () => undefined });
    expect(attempts).toBe(2);
  });

  test('contains no other statement', () => {
    expect(() => stepsOf('CREATE INDEX CONCURRENTLY a ON b (c); SELECT 1;')).toThrow('other statements: SELECT 1');
    expect(stepsOf(`SELECT 'CREATE INDEX CONCURRENTLY a ON b (c)'`)).toBeNull();
  });
});

describe('applyMigrations', () => {
  test('continues after a migrator was killed while it built an index', async () => {
    const prismaDir = await withMigration('CREATE INDEX CONCURRENTLY calls_idx ON calls (id);');
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM calls');
    const child = spawn(process.execPath, [appMain('cli'), 'db', 'migrate'], {
      env: { DATABASE_URL: databaseUrl, PRISMA_DIR: prismaDir },
      stdio: 'ignore',
    });
    const closed = once(child, 'close');
    const builders = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'`;
    await eventually(async () => (await app.query(builders)).rowCount === 1, { timeoutMs: 60_000 });
    child.kill('SIGKILL');
    await closed;
    // PostgreSQL ends the session of the killed process by itself.
    await eventually(async () => (await app.query(builders)).rowCount === 0);
    expect(await isValid('calls_idx')).toBe(false);
    await reader.query('COMMIT');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await isValid('calls_idx')).toBe(true);
    await forget();
  });

  test('continues after a migrator lost its connection while it built an index', async () => {
    const prismaDir = await withMigration('CREATE INDEX CONCURRENTLY calls_idx ON calls (id);');
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM calls');
    const migrating = applyMigrations({ databaseUrl, prismaDir }).catch((error: unknown) => error);
    const terminated = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'`;
    await eventually(async () => (await app.query(terminated)).rowCount === 1);
    expect(String(await migrating)).toContain('terminating connection');
    await reader.query('COMMIT');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    expect(await isValid('calls_idx')).toBe(true);
    await forget();
  });

  test('neither repeats nor loses a migration whose process was killed before or after its commit', async () => {
    const prismaDir = await withMigration('CREATE TABLE killed ();');
    await app.query(`INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ('x', '', '${NEXT}')`);
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    const counted = `SELECT applied_steps_count AS count FROM _prisma_migrations WHERE finished_at IS NOT NULL
      AND migration_name = '${NEXT}'`;
    expect((await app.query(counted)).rows).toEqual([{ count: 1 }]);
    for (const logs of ['NULL', `'connection lost'`]) {
      const unfinish = `UPDATE _prisma_migrations SET finished_at = NULL, logs = ${logs}`;
      await app.query(`${unfinish} WHERE migration_name = '${NEXT}' AND rolled_back_at IS NULL`);
      expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([]);
      expect((await app.query(counted)).rows).toEqual([{ count: 1 }]);
    }
    await app.query('DROP TABLE killed');
    await forget();
  });

  test('applies a migration later whose locks stayed busy', async () => {
    const prismaDir = await withMigration('ALTER TABLE calls ADD COLUMN n int;');
    await reader.query('BEGIN; SELECT FROM calls');
    const busy = { ...WAITS, waitMsMax: 60 };
    await expect(applyMigrations({ databaseUrl, prismaDir, lockWaits: busy })).rejects.toThrow(
      `Migration ${NEXT} is not applied: other transactions have held its locks`,
    );
    expect(await pendingMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    await reader.query('COMMIT');
    expect(await applyMigrations({ databaseUrl, prismaDir })).toEqual([NEXT]);
    await forget();
  });
});

test('migrators and PostgreSQL notice a dead connection within a minute', async () => {
  const fields = await connectionFields({ databaseUrl });
  const { rows } = await withConnection(fields, (client) =>
    client.query(`SELECT current_setting('tcp_keepalives_idle') AS idle, current_setting('tcp_keepalives_count') AS count,
      current_setting('tcp_keepalives_interval') AS interval`),
  );
  expect(rows).toEqual([{ idle: '30', interval: '10', count: '3' }]);
});

test('statementsOf splits a script at the semicolons outside of literals, names, bodies and comments', () => {
  const script = `-- a; b\nSELECT ';''', "x;y" /* ; */ - 1; CREATE FUNCTION f() AS $a$ b; $b$ $a$;;`;
  expect(statementsOf(script)).toEqual([`SELECT ';''', "x;y"   - 1`, 'CREATE FUNCTION f() AS $a$ b; $b$ $a$']);
});

async function connected(): Promise<pg.Client> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  stopAtEnd(() => client.end());
  return client;
}

function run(script: string, lockWaits = WAITS): Promise<void> {
  return runScript(migrator, { name: 'test', script }, { lockWaits, report: (line) => reported.push(line) });
}

/** What PostgreSQL shows of the migrator's session. */
async function migratorState(): Promise<Record<string, unknown>> {
  const pid = (migrator as unknown as { processID: number }).processID;
  const { rows } = await app.query('SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $1', [
    pid,
  ]);
  return rows[0];
}

async function isValid(index: string): Promise<boolean | null> {
  const { rows } = await app.query('SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)', [
    index,
  ]);
  return rows[0]?.valid ?? null;
}

/** A copy of prisma/ with one more migration. */
async function withMigration(script: string): Promise<string> {
  const prismaDir = temporaryDirectory('prisma');
  await cp(PRISMA_DIR, prismaDir, { recursive: true });
  await mkdir(join(prismaDir, 'migrations', NEXT));
  await writeFile(join(prismaDir, 'migrations', NEXT, 'migration.sql'), script);
  return prismaDir;
}

/** Removes the records of that migration. */
async function forget(): Promise<void> {
  await app.query(`DELETE FROM _prisma_migrations WHERE migration_name = '${NEXT}'`);
}
