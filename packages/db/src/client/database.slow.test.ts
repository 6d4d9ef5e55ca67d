import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  execute,
  createTestDatabase,
  eventually,
  PATIENT_DEADLINES,
  startTestPgBouncer,
  startTestPostgres,
  stopAtEnd,
} from '@callplane/testing';
import pg from 'pg';
import { Database, type DatabaseSettings, type TypedSql } from './database.js';
import { isDatabaseUnavailable } from './unavailable.js';

const DEADLINES = { connectMs: 2000, statementMs: 1500, transactionMs: 1500 };

let url: string;
let reader: Database;
const opened: Database[] = [];

beforeAll(async () => {
  ({ url } = await createTestDatabase());
  reader = new Database({ url, poolMax: 1 });
  stopAtEnd(() => reader.close());
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.close()));
});

function open(settings: Partial<DatabaseSettings> = {}): Database {
  const database = new Database({ url, poolMax: 1, deadlines: DEADLINES, ...settings });
  opened.push(database);
  return database;
}

/** A database apart from the one that the other tests share. */
async function ownDatabase() {
  const { url: own } = await createTestDatabase();
  return { url: own, name: new URL(own).pathname.slice(1) };
}

/** The outcome of a query, and how many milliseconds it took. */
async function outcome(asked: PromiseLike<unknown>) {
  const startedAt = performance.now();
  const result = await Promise.resolve(asked).then(
    () => 'done',
    (error: unknown) => (isDatabaseUnavailable(error) ? 'unavailable' : error),
  );
  return { result, ms: performance.now() - startedAt };
}

test('reports a read-only PostgreSQL as unavailable for writes, and replaces its connections', async () => {
  const { url: own, name } = await ownDatabase();
  const settings = { url: own, poolMax: 2, deadlines: PATIENT_DEADLINES };
  const admin = open(settings);
  // In separate transactions, because `ALTER DATABASE` is a write as well.
  const setReadOnly = (value: 'on' | 'off') =>
    admin.transaction(async (sql) => {
      await sql.$executeRaw`SET TRANSACTION READ WRITE`;
      await execute({ sql }, `ALTER DATABASE "${name}" SET default_transaction_read_only = ${value}`);
    });
  await setReadOnly('on');
  const database = open(settings);
  const write = { id: 'proj_1', name: 'A', createdAt: new Date() };
  const create = () => database.prisma.project.create({ data: write });
  for (const ask of [
    create,
    () => database.sql.$queryRaw`INSERT INTO projects (id, name, created_at) VALUES ('proj_1', 'A', now())`,
    () => database.sql.$executeRaw`DELETE FROM projects`,
    () => database.transaction((tx) => tx.$executeRaw`INSERT INTO projects VALUES ('proj_1', 'A', now())`),
  ]) {
    expect((await outcome(ask())).result).toBe('unavailable');
  }
  expect(await database.prisma.project.count()).toBe(0);
  await setReadOnly('off');
  // Sessions that were opened during the read-only phase would stay read-only; each was replaced when it refused a
  // write.
  await eventually(async () => (await outcome(create())).result === 'done');
  expect(await database.prisma.project.count()).toBe(1);
});

test.each([
  ['53100', 'disk full'],
  ['53200', 'out of memory'],
  ['53300', 'too many connections'],
])('reports SQLSTATE %s (%s) as unavailable on every path of a statement', async (code) => {
  const { url: own } = await ownDatabase();
  const database = open({ url: own, deadlines: PATIENT_DEADLINES });
  await execute(
    database,
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '${code}'; END $$`,
  );
  await execute(database, 'CREATE TRIGGER refuse BEFORE INSERT ON projects EXECUTE FUNCTION refuse()');
  const write = { id: 'proj_1', name: 'A', createdAt: new Date() };
  for (const ask of [
    () => database.prisma.project.create({ data: write }),
    () => database.sql.$queryRaw`INSERT INTO projects (id, name, created_at) VALUES ('proj_1', 'A', now())`,
    () => database.transaction((tx) => tx.$executeRaw`INSERT INTO projects VALUES ('proj_1', 'A', now())`),
  ]) {
    expect((await outcome(ask())).result).toBe('unavailable');
  }
});

test('enforces the deadlines of connections, statements and transactions in a process that runs', async () => {
  const postgres = await startTestPostgres();
  const settings = { url: (await postgres.createDatabase()).url };
  const [connected, crowded, fresh] = [open(settings), open(settings), open(settings)];
  await Promise.all([connected.ping(), crowded.ping()]);
  const forEver = async (tx: TypedSql) => {
    for (;;) await tx.$queryRaw`SELECT 1 FROM pg_sleep(0.1)`;
  };
  const { result, ms } = await outcome(connected.transaction(forEver));
  expect(result).toBe('unavailable');
  expect(ms).toBeGreaterThanOrEqual(DEADLINES.transactionMs - 1);

  postgres.freeze();
  const [unanswered, crowdedOut, unbegun, unopened] = await Promise.all([
    outcome(crowded.sql.$queryRaw`SELECT 1 AS unanswered`),
    outcome(crowded.sql.$queryRaw`SELECT 1 AS crowded_out`),
    outcome(connected.transaction(async () => undefined)),
    outcome(fresh.ping()),
  ]);
  for (const { result, ms } of [unanswered, unbegun]) {
    expect(result).toBe('unavailable');
    expect(ms).toBeGreaterThan(DEADLINES.statementMs);
  }
  for (const { result, ms } of [crowdedOut, unopened]) {
    expect(result).toBe('unavailable');
    expect(ms).toBeGreaterThanOrEqual(DEADLINES.connectMs - 1);
  }
  postgres.thaw();
  await Promise.all([connected, crowded, fresh].map((database) => database.ping()));

  // As after a failover whose old primary came back as a standby, behind the same address.
  postgres.kill('SIGINT');
  await eventually(async () => (await outcome(fresh.ping())).result === 'unavailable');
  await writeFile(join(postgres.dataDir, 'standby.signal'), '');
  await postgres.restart();
  const standby = new pg.Client(settings.url);
  await standby.connect();
  for (const database of [connected, fresh]) {
    expect((await outcome(database.sql.$queryRaw`SELECT id FROM rooms`)).result).toBe('unavailable');
    await expect(database.checkReady()).rejects.toMatchObject({ reason: 'read-only' });
  }
  await standby.query('SELECT pg_promote()');
  await standby.end();
  await eventually(async () => (await outcome(fresh.checkReady())).result === 'done');
});

test('adds the options of the URL to its own, which win', async () => {
  const options = encodeURIComponent('-c TimeZone=Asia/Tokyo -c work_mem=5MB');
  const database = open({ url: `${url}?options=${options}&application_name=mine` });
  const [row] = await database.sql.$queryRaw<[Record<string, string>]>`
    SELECT current_setting('TimeZone') AS zone, current_setting('work_mem') AS memory,
      current_setting('application_name') AS name`;
  expect(row).toEqual({ zone: 'UTC', memory: '5MB', name: 'mine' });
});

test('is not ready while its session is in another time zone or read-only', async () => {
  const database = open();
  for (const name of ['Etc/UTC', 'Etc/Universal', 'Etc/Zulu']) {
    await database.sql.$queryRaw`SELECT set_config('TimeZone', ${name}, false)`;
    await database.checkReady();
  }
  await database.sql.$queryRaw`SELECT set_config('TimeZone', 'Africa/Abidjan', false)`;
  await expect(database.checkReady()).rejects.toMatchObject({ reason: 'time-zone' });
  await database.sql.$queryRaw`SELECT set_config('default_transaction_read_only', 'on', false)`;
  await expect(database.checkReady()).rejects.toMatchObject({ reason: 'read-only' });
  // Each check that failed has replaced its connection.
  await database.checkReady();
});

test('accepts a server that a pooler wrongly reports as a standby', async () => {
  const proxy = await testProxy(new URL(url));
  const database = open({ url: proxy.url });
  await database.ping();
  expect(proxy.standbyReports()).toBe(0);
  proxy.reportStandby();
  const behindPooler = open({ url: proxy.url });
  await behindPooler.checkReady();
  expect(proxy.standbyReports()).toBe(1);
});

test('works with a database, role and schema path whose settings of sessions are others', async () => {
  const { url: own, name } = await ownDatabase();
  const admin = open({ url: own });
  await execute(admin, 'CREATE SCHEMA other');
  for (const setting of [
    "datestyle TO 'German, DMY'",
    "timezone TO 'America/Los_Angeles'",
    "intervalstyle TO 'sql_standard'",
    "bytea_output TO 'escape'",
    'extra_float_digits TO -5',
    'array_nulls TO off',
    'standard_conforming_strings TO off',
    "default_transaction_isolation TO 'serializable'",
    'lock_timeout TO 1',
    'idle_session_timeout TO 1',
    "search_path TO 'other'",
  ]) {
    await execute(admin, `ALTER DATABASE "${name}" SET ${setting}`);
  }
  const database = open({ url: own });
  await database.checkReady();
  const at = new Date('2026-02-03T04:05:06.789Z');
  const bytes = Buffer.from([0, 92, 255]);
  await database.prisma.project.create({ data: { id: 'proj_1', name: 'x', createdAt: at } });
  expect(await database.prisma.project.findMany()).toEqual([{ id: 'proj_1', name: 'x', createdAt: at }]);
  const rows = await database.sql.$queryRaw`
    SELECT created_at AS "createdAt", ${bytes}::bytea AS bytes, 0.1::float8 + 0.2::float8 AS sum,
      ARRAY[1, NULL]::int[] AS list, current_setting('transaction_isolation') AS isolation
    FROM projects`;
  expect(rows).toEqual([{ createdAt: at, bytes, sum: 0.1 + 0.2, list: [1, null], isolation: 'read committed' }]);
});

test('is not ready behind a pooler with other settings of sessions', async () => {
  const { url: own, name } = await ownDatabase();
  await execute(open({ url: own }), `ALTER DATABASE "${name}" SET datestyle TO 'German, DMY'`);
  const { throughPooler } = await startTestPgBouncer(own);
  const pooled = open({ url: throughPooler(own), pooler: 'transaction' });
  await expect(pooled.checkReady()).rejects.toMatchObject({ reason: 'session' });
});

describe('a conflict', () => {
  /** Two transactions that lock two rows in opposite orders. */
  test('of transactions is repeated', async () => {
    const { url: own } = await ownDatabase();
    let repeats = 0;
    const onRepeat = () => void (repeats += 1);
    const database = open({ url: own, poolMax: 3, deadlines: PATIENT_DEADLINES, onRepeat });
    const data = ['a', 'b'].map((id) => ({ id, name: '-', createdAt: new Date() }));
    await database.prisma.project.createMany({ data });
    // Resolves for the first time once both transactions hold their first row.
    let count = 0;
    let meet: () => void = () => undefined;
    const met = new Promise<void>((resolve) => (meet = resolve));
    const append = (first: string, second: string) =>
      database.transaction(async (sql) => {
        await sql.$executeRaw`UPDATE projects SET name = name || 'x' WHERE id = ${first}`;
        if (++count >= 2) meet();
        await met;
        await sql.$executeRaw`UPDATE projects SET name = name || 'x' WHERE id = ${second}`;
      });
    await Promise.all([append('a', 'b'), append('b', 'a')]);
    expect((await database.prisma.project.findMany()).map(({ name }) => name.length)).toEqual([3, 3]);
    expect(repeats).toBeGreaterThan(0);
  });

  test('of the call of a model is repeated', async () => {
    const { url: own } = await ownDatabase();
    let repeats = 0;
    const database = open({ url: own, onRepeat: () => void (repeats += 1) });
    await execute(database, `CREATE SEQUENCE tries`);
    await execute(
      database,
      `CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF nextval('tries') < 3 THEN RAISE SQLSTATE '40P01'; END IF; RETURN new; END $$`,
    );
    await execute(database, 'CREATE TRIGGER conflict BEFORE INSERT ON projects EXECUTE FUNCTION conflict()');
    await database.prisma.project.create({ data: { id: 'proj_1', name: 'A', createdAt: new Date() } });
    expect(repeats).toBe(2);
  });

  test('of a lone statement is repeated, and an endless one is an outage', async () => {
    const { url: own } = await ownDatabase();
    let repeats = 0;
    const database = open({ url: own, poolMax: 3, onRepeat: () => void (repeats += 1) });
    await execute(database, `CREATE SEQUENCE tries`);
    await execute(
      database,
      `CREATE FUNCTION conflict_until(n int) RETURNS int LANGUAGE plpgsql AS $$
      BEGIN IF nextval('tries') < n THEN RAISE SQLSTATE '40001'; END IF; RETURN 1; END $$`,
    );
    expect(await database.sql.$queryRaw`SELECT conflict_until(3) AS one`).toEqual([{ one: 1 }]);
    expect(repeats).toBe(2);
    expect((await outcome(database.sql.$queryRaw`SELECT conflict_until(1000) AS one`)).result).toBe('unavailable');
    expect(repeats).toBe(6);
  });
});

test('works through PgBouncer in transaction mode, with deadlines in transactions and the time zone of the database', async () => {
  const { throughPooler } = await startTestPgBouncer(url);
  const settings = { url: throughPooler(url), pooler: 'transaction', poolMax: 10 } as const;
  const database = open({ ...settings, indexesOnly: true });
  const deadlines = () =>
    database.transaction(
      (tx) => tx.$queryRaw`
    SELECT current_setting('statement_timeout') AS statement, current_setting('TimeZone') AS zone,
      current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
  // More clients than sessions, so that statements of one client run in several of them.
  const answers = await Promise.all(
    Array.from({ length: 15 }, (_, n): PromiseLike<unknown>[] => [
      database.sql.$queryRaw`SELECT ${n}::int AS n, ${'x'} AS text`,
      database.prisma.room.count({ where: { name: String(n) } }),
      database.transaction(async (sql) => sql.$queryRaw`SELECT ${n}::int AS n`),
    ]).flat(),
  );
  expect(answers.slice(0, 3)).toEqual([[{ n: 0, text: 'x' }], 0, [{ n: 0 }]]);
  expect(await deadlines()).toEqual([{ statement: '1500ms', zone: 'UTC', idle: '1500ms' }]);
  await database.checkReady();
  // A session keeps nothing of a transaction.
  const [{ left }] = await database.sql.$queryRaw<
    [{ left: string }]
  >`SELECT current_setting('statement_timeout') AS left`;
  expect(left).toBe('0');
  // Without the option of the app, PgBouncer refuses the connection.
  await expect(open({ ...settings, pooler: 'none' }).ping()).rejects.toThrow('unsupported startup parameter');
});

test('moves to another server at the same address, although the former one never answers', async () => {
  const proxy = await testProxy(new URL(url));
  const database = open({ url: proxy.url });
  await database.ping();
  proxy.loseServer();
  expect((await outcome(database.ping())).result).toBe('unavailable');
  await eventually(async () => (await outcome(database.ping())).result === 'done');
});

test('survives a connection that fails in the read that gives it to the next caller', async () => {
  const proxy = await testProxy(new URL(url));
  const database = open({ url: proxy.url });
  await database.ping();
  const first = outcome(database.sql.$queryRaw`SELECT pg_sleep(0.1)`);
  const work = () => Promise.resolve('never run');
  const waiting = [database.transaction(work), database.transaction(work)].map(outcome);
  await eventually(() => database.connections().waiting === 2);
  proxy.endAfterNextStatement();
  expect((await first).result).toBe('done');
  // The connection went to the first of the two, and a new one to the other.
  expect((await Promise.all(waiting)).map(({ result }) => result)).toEqual(['unavailable', 'done']);
  await database.ping();
});

/**
 * Forwards to PostgreSQL. It can end a connection as a restart of PostgreSQL does, leave connections open whose server is
 * gone, and report a standby to new ones as PgBouncer may do after a failover.
 */
async function testProxy(target: URL) {
  let isEnding = false;
  let isStandby = false;
  let standbyReports = 0;
  const losses: (() => void)[] = [];
  const server = createServer((socket) => {
    const upstream = connect(Number(target.port), target.hostname);
    let isLost = false;
    losses.push(() => {
      isLost = true;
      socket.unpipe(upstream).resume();
      upstream.destroy();
    });
    socket.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => socket.destroy()).on('close', () => isLost || socket.destroy());
    socket.pipe(upstream);
    upstream.on('data', (sent) => {
      const data = isStandby ? withStandby(sent) : sent;
      if (data !== sent) standbyReports += 1;
      if (isEnding && data.at(-6) === 'Z'.charCodeAt(0)) {
        isEnding = false;
        // One write, so that the client reads both at once.
        socket.end(Buffer.concat([data, terminated()]));
      } else {
        socket.write(data);
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const proxied = new URL(target);
  proxied.hostname = '127.0.0.1';
  proxied.port = String((server.address() as AddressInfo).port);
  return {
    url: proxied.href,
    endAfterNextStatement: () => void (isEnding = true),
    /** The client notices nothing. New connections reach PostgreSQL. */
    loseServer: () => losses.splice(0).forEach((lose) => lose()),
    reportStandby: () => void (isStandby = true),
    /** The number of connections that got a changed report. */
    standbyReports: () => standbyReports,
  };
}

/** Changes the ParameterStatus `in_hot_standby` of a server that accepts writes. Returns other data as they are. */
function withStandby(data: Buffer): Buffer {
  const status = (value: string) => {
    const fields = Buffer.from(`in_hot_standby\0${value}\0`);
    const head = Buffer.from('S\0\0\0\0');
    head.writeInt32BE(fields.length + 4, 1);
    return Buffer.concat([head, fields]);
  };
  const at = data.indexOf(status('off'));
  if (at < 0) return data;
  return Buffer.concat([data.subarray(0, at), status('on'), data.subarray(at + status('off').length)]);
}

/** The ErrorResponse of PostgreSQL to a client that an administrator disconnects. */
function terminated(): Buffer {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
