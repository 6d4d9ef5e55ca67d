import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, eventually, startTestPostgres, stopAtEnd } from '@callplane/testing';
import { Database, type DatabaseSettings } from './database.js';
import { isDatabaseUnavailable } from './unavailable.js';

const DEADLINES = { connectMs: 2000, statementMs: 1500, transactionMs: 1500 };
/** Longer than all of them, and than a statement is waited for. */
const STOOD_MS = 4000;

let url: string;
let watcher: Database;
const opened: Database[] = [];

beforeAll(async () => {
  ({ url } = await createTestDatabase());
  watcher = new Database({ url, poolMax: 1 });
  stopAtEnd(() => watcher.close());
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.close()));
});

function open(settings: Partial<DatabaseSettings> = {}): Database {
  const database = new Database({ url, poolMax: 1, deadlines: DEADLINES, ...settings });
  opened.push(database);
  return database;
}

/** As a stopped process does: nothing runs and nothing is read, while PostgreSQL goes on. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOOD_MS);
}

/** Resolves once PostgreSQL works on a statement with that text. */
async function underWay(text: string): Promise<void> {
  await eventually(async () => {
    const found = await watcher.prisma.$queryRaw<unknown[]>`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
        AND query LIKE '%' || ${text} || '%'`;
    return found.length > 0;
  });
}

/** What became of it, and after how many milliseconds. */
async function outcome(asked: PromiseLike<unknown>) {
  const startedAt = performance.now();
  const result = await Promise.resolve(asked).then(
    () => 'done',
    (error: unknown) => (isDatabaseUnavailable(error) ? 'unavailable' : error),
  );
  return { result, ms: performance.now() - startedAt };
}

test('whoever waited for a connection while the process stood still gets one', async () => {
  const database = open();
  // Opened, with Prisma's compiler loaded: what follows is asked at once.
  await Promise.all([database.prisma.room.count(), watcher.prisma.room.count()]);
  const answers = [
    database.prisma.$queryRaw`SELECT 1 AS holds_it FROM pg_sleep(1)`,
    database.hot.$queryRaw`SELECT 1 AS plain`,
    database.prisma.room.count(),
    database.transaction((tx) => tx.$queryRaw`SELECT 1 AS within`),
  ].map(outcome);
  await Promise.all([underWay('holds_it'), eventually(() => database.connections().waiting === 3)]);
  standStill();
  expect((await Promise.all(answers)).map(({ result }) => result)).toEqual(['done', 'done', 'done', 'done']);
});

test('a connection that was being opened while the process stood still is opened anew', async () => {
  const database = open();
  const answer = outcome(database.ping());
  standStill();
  expect((await answer).result).toBe('done');
});

test('an answer that came while the process stood still is taken', async () => {
  const database = open();
  const answer = outcome(database.hot.$queryRaw`SELECT 1 AS plain_answer FROM pg_sleep(0.2)`);
  await underWay('plain_answer');
  standStill();
  expect((await answer).result).toBe('done');
});

test('a transaction in which the process stood still goes on and commits', async () => {
  const database = open();
  const written = database.transaction(async (tx) => {
    await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await tx.$executeRaw`CREATE TABLE stood_still (n int)`;
    await tx.$queryRaw`SELECT 1 AS in_transaction FROM pg_sleep(0.2)`;
    await tx.$executeRaw`INSERT INTO stood_still VALUES (1)`;
  });
  const answer = outcome(written);
  await underWay('in_transaction');
  standStill();
  expect((await answer).result).toBe('done');
  expect(await watcher.prisma.$queryRaw`SELECT n FROM stood_still`).toEqual([{ n: 1 }]);
});

test('a transaction that PostgreSQL ended meanwhile is unavailable, and its connection is replaced', async () => {
  const errors: Error[] = [];
  const database = open({ onConnectionError: (error) => errors.push(error) });
  const answer = outcome(
    database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 AS ended_meanwhile FROM pg_sleep(0.2)`;
      await tx.$executeRaw`CREATE TABLE never (n int)`;
    }),
  );
  await underWay('ended_meanwhile');
  standStill();
  expect((await answer).result).toBe('unavailable');
  expect(errors.map(String)).toEqual([expect.stringContaining('idle-in-transaction timeout')]);
  expect(await watcher.prisma.$queryRaw`SELECT to_regclass('never')::text AS name`).toEqual([{ name: null }]);
  await database.ping();
});

test('a process that runs waits no longer than it should, for a connection, an answer or the end of a transaction', async () => {
  const postgres = await startTestPostgres();
  const settings = { url: (await postgres.createDatabase()).url };
  const [connected, crowded, fresh] = [open(settings), open(settings), open(settings)];
  await Promise.all([connected.ping(), crowded.ping()]);
  const tooLong = outcome(
    connected.transaction(async (tx) => {
      for (;;) await tx.$queryRaw`SELECT 1 FROM pg_sleep(0.1)`;
    }),
  );
  expect((await tooLong).result).toBe('unavailable');
  expect((await tooLong).ms).toBeGreaterThanOrEqual(DEADLINES.transactionMs - 1);

  postgres.freeze();
  const [unanswered, crowdedOut, unbegun, unopened] = await Promise.all([
    outcome(crowded.hot.$queryRaw`SELECT 1 AS unanswered`),
    outcome(crowded.hot.$queryRaw`SELECT 1 AS crowded_out`),
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
});
