import { execFileSync } from 'node:child_process';
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import {
  eventually,
  PATIENT_DEADLINES,
  startTestPostgres,
  startTestStandby,
  stopAtEnd,
  temporaryDirectory,
  type TestPostgres,
} from '@callplane/testing';
import pg from 'pg';
import { Database, type DatabaseSettings } from './database.js';
import { isDatabaseUnavailable } from './unavailable.js';
import { probeWrite } from './session.js';
import { COMMIT_SOON } from './sql.js';

/** Short, so that a frozen server is noticed soon. */
const DEADLINES = { connectMs: 4000, statementMs: 1500, transactionMs: 4000 };

const files = temporaryDirectory('failover');
const authority = makeAuthority('own');
const other = makeAuthority('other');
const { caFile } = authority;
const opened: Database[] = [];
let primary: TestPostgres;
let standby: TestPostgres;
let admin: pg.Client;

beforeAll(async () => {
  primary = await startTestPostgres();
  admin = new pg.Client(primary.url);
  admin.on('error', () => undefined);
  await admin.connect();
  stopAtEnd(() => admin.end());
  await encrypt();
  await admin.query('CREATE TABLE notes (n int)');
  standby = await startTestStandby(primary, 's1');
  await configure(`synchronous_standby_names = 's1'`);
  await eventually(async () => {
    const { rows } = await admin.query('SELECT 1 FROM pg_stat_replication WHERE sync_state = $1', ['sync']);
    return rows.length === 1;
  });
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.close()));
});

function open(settings: Partial<DatabaseSettings> & { url: string }): Database {
  const database = new Database({ poolMax: 2, deadlines: PATIENT_DEADLINES, ...settings });
  opened.push(database);
  return database;
}

/** A URL of the given ports of 127.0.0.1, in this order. */
function urlOf(ports: readonly number[], parameters = '', { host = '127.0.0.1', user = 'postgres' } = {}): string {
  const hosts = ports.map((port) => `${host}:${port}`).join();
  return `postgresql://${user}:test-postgres-password@${hosts}/postgres?${parameters}`;
}

/** Sets a setting of the primary without a restart. */
async function configure(setting: string): Promise<void> {
  await admin.query(`ALTER SYSTEM SET ${setting}`);
  await admin.query('SELECT pg_reload_conf()');
}

/** Creates a CA, and a certificate for the name `localhost`, with the `openssl` command, which the tests require. */
function makeAuthority(name: string) {
  const file = (kind: string) => join(files, `${name}-${kind}`);
  const openssl = (...options: string[]): unknown => execFileSync('openssl', options, { stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`];
  openssl('req', '-x509', ...newKey, '-days', '2', '-keyout', file('ca.key'), '-out', file('ca.pem'));
  openssl('req', ...newKey, '-keyout', file('server.key'), '-out', file('server.csr'));
  writeFileSync(file('names'), 'subjectAltName=DNS:localhost');
  const issuer = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  openssl('x509', '-req', '-in', file('server.csr'), ...issuer, '-extfile', file('names'), '-out', file('server.pem'));
  const read = (kind: string): string => readFileSync(file(kind), 'utf8');
  return { caFile: file('ca.pem'), ca: read('ca.pem'), cert: read('server.pem'), key: read('server.key') };
}

/** Gives the primary a certificate of our CA for the name `localhost`. */
async function encrypt(): Promise<void> {
  const { uid, gid } = statSync(primary.dataDir);
  for (const [name, text] of [
    ['server.key', authority.key],
    ['server.crt', authority.cert],
  ] as const) {
    const file = join(primary.dataDir, name);
    writeFileSync(file, text, { mode: 0o600 });
    chownSync(file, uid, gid);
  }
  await configure('ssl = on');
}

/** `done`, `unavailable`, or the error. */
async function outcome(asked: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(asked).then(
    () => 'done',
    (error: unknown) => (isDatabaseUnavailable(error) ? 'unavailable' : error),
  );
}

const isEncrypted = async (database: Database) => {
  const [row] = await database.sql.$queryRaw<[{ ssl: boolean }]>`
    SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
  return row.ssl;
};

const portOf = async (database: Database) => {
  const [row] = await database.sql.$queryRaw<[{ port: number }]>`SELECT inet_server_port() AS port`;
  return row.port;
};

test('sslmode encrypts, and checks certificate and name, as libpq does', async () => {
  const ports = [primary.port];
  expect(await isEncrypted(open({ url: urlOf(ports) }))).toBe(false);
  expect(await isEncrypted(open({ url: urlOf(ports, 'sslmode=require') }))).toBe(true);
  expect(await isEncrypted(open({ url: urlOf(ports, 'sslmode=verify-ca'), caFile }))).toBe(true);
  const named = urlOf(ports, `sslmode=verify-full&sslrootcert=${caFile}`, { host: 'localhost' });
  expect(await isEncrypted(open({ url: named }))).toBe(true);
  for (const refused of [
    { url: urlOf(ports, 'sslmode=verify-full'), caFile },
    { url: urlOf(ports, 'sslmode=verify-ca'), caFile: other.caFile },
    { url: urlOf(ports, 'sslmode=require'), caFile: other.caFile },
    { url: urlOf(ports, 'sslmode=verify-full', { host: 'localhost' }) },
  ]) {
    expect(await outcome(open(refused).ping())).toBe('unavailable');
    expect(await outcome(open(refused).sql.$queryRaw`SELECT 1`)).toBe('unavailable');
  }
});

test('a password and a CA that are replaced in their files need no restart', async () => {
  const passwordFile = join(files, 'password');
  const ownCa = join(files, 'own-ca.pem');
  writeFileSync(passwordFile, 'first\n');
  writeFileSync(ownCa, other.ca);
  await admin.query(`CREATE ROLE app LOGIN PASSWORD 'first'`);
  const url = urlOf([primary.port], 'sslmode=verify-ca', { user: 'app' });
  const database = open({ url, passwordFile, caFile: ownCa });
  expect(await outcome(database.ping())).toBe('unavailable');
  // As in the middle of a replacement that is not atomic.
  writeFileSync(ownCa, '');
  writeFileSync(passwordFile, '');
  expect(await outcome(database.ping())).toBe('unavailable');
  writeFileSync(ownCa, authority.ca);
  expect(await outcome(database.ping())).toBe('done');

  await admin.query(`ALTER ROLE app PASSWORD 'second'`);
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`);
  for (const ask of [() => database.ping(), () => database.sql.$queryRaw`SELECT 1`]) {
    await eventually(async () => (await outcome(ask())) === 'unavailable');
  }
  writeFileSync(passwordFile, 'second\n');
  expect(await outcome(database.sql.$queryRaw`SELECT 1`)).toBe('done');
});

test('a statement with COMMIT_SOON does not wait for a synchronous standby, and the next statement does', async () => {
  const { sql } = open({ url: urlOf([primary.port]), poolMax: 1, deadlines: DEADLINES });
  expect(await outcome(sql.$queryRaw`SELECT 1`)).toBe('done');
  standby.freeze();
  try {
    expect(await outcome(sql.$executeRaw`INSERT INTO notes SELECT 1 WHERE ${COMMIT_SOON}`)).toBe('done');
    expect(await outcome(sql.$executeRaw`INSERT INTO notes VALUES (2)`)).toBe('unavailable');
  } finally {
    standby.thaw();
  }
  await eventually(async () => (await outcome(sql.$executeRaw`DELETE FROM notes`)) === 'done');
});

test('while a synchronous standby is away, writes hold a bounded number of connections, reads succeed, and no row is lost', async () => {
  const url = urlOf([primary.port], 'application_name=hanging');
  const writes = open({ url, deadlines: DEADLINES });
  const reads = open({ url: urlOf([primary.port]), poolMax: 1, deadlines: DEADLINES });
  const write = (n: number) => outcome(writes.sql.$executeRaw`INSERT INTO notes VALUES (${n})`);
  expect(await write(0)).toBe('done');
  expect(await outcome(probeWrite(writes.sql))).toBe('done');
  standby.freeze();
  try {
    const answers: unknown[] = [];
    for (let n = 1; n <= 9; n += 3) {
      answers.push(...(await Promise.all([write(n), write(n + 1), write(n + 2)])));
      expect(await outcome(reads.sql.$queryRaw`SELECT n FROM notes`)).toBe('done');
    }
    answers.push(await outcome(probeWrite(writes.sql)));
    expect(new Set(answers)).toEqual(new Set(['unavailable']));
    const { rows } = await admin.query(
      `SELECT 1 FROM pg_stat_activity WHERE application_name = 'hanging' AND wait_event = 'SyncRep'`,
    );
    expect(rows.length).toBeGreaterThanOrEqual(2);
    // Twice the pool at most: connections that were given up, and their first replacements.
    expect(rows.length).toBeLessThanOrEqual(4);
    // Rows whose commit waits are not visible yet: a failover could lose them.
    expect(await reads.sql.$queryRaw`SELECT n FROM notes`).toEqual([{ n: 0 }]);
  } finally {
    standby.thaw();
  }
  await eventually(async () => (await write(10)) === 'done');
  // Writes that got an error were committed nevertheless.
  const [{ n: committed }] = await reads.sql.$queryRaw<[{ n: number }]>`SELECT count(*)::int AS n FROM notes`;
  expect(committed).toBeGreaterThan(2);
});

test('connections move to the host that accepts writes, when the primary is frozen and when it is killed', async () => {
  // Nothing listens on the first port.
  const url = urlOf([1, standby.port, primary.port], 'target_session_attrs=read-write');
  const database = open({ url, deadlines: DEADLINES });
  const idle = open({ url, deadlines: DEADLINES });
  await Promise.all([database.checkReady(), idle.checkReady()]);
  expect(await portOf(database)).toBe(primary.port);

  primary.freeze();
  expect(await outcome(database.sql.$executeRaw`INSERT INTO notes VALUES (20)`)).toBe('unavailable');
  const promoting = new pg.Client(standby.url);
  await promoting.connect();
  await promoting.query('SELECT pg_promote()');
  await promoting.query('ALTER SYSTEM RESET synchronous_standby_names');
  await promoting.query('SELECT pg_reload_conf()');
  await promoting.end();
  await eventually(async () => (await outcome(database.sql.$executeRaw`INSERT INTO notes VALUES (21)`)) === 'done');
  await eventually(async () => (await outcome(idle.checkReady())) === 'done');
  primary.thaw();
  // The former primary still accepts connections, and can acknowledge nothing.
  expect([await portOf(database), await portOf(idle)]).toEqual([standby.port, standby.port]);
  primary.kill('SIGKILL');
  expect(await portOf(database)).toBe(standby.port);
  // A new process, which knows nothing of the past, finds the host as well.
  expect(await portOf(open({ url, deadlines: DEADLINES }))).toBe(standby.port);
});
