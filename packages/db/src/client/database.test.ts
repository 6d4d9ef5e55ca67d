import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, eventually, startTestPostgres, stopAtEnd } from '@callplane/testing';
import { Database, type DatabaseSettings } from './database.js';
import { isDatabaseUnavailable } from './unavailable.js';

const DEADLINES = { connectMs: 2000, statementMs: 1500, transactionMs: 1500 };
/** Longer than all of them, than a statement is waited for, and than anybody usually waits for a connection. */
const STOOD_MS = 4000;

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

/** As a stopped process does: nothing runs and nothing is read, while PostgreSQL goes on. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOOD_MS);
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
  const database = open({ deadlines: { ...DEADLINES, connectMs: 3000, transactionMs: 15_000 } });
  await database.prisma.room.count();
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const holding = database.transaction(() => held);
  await eventually(() => database.connections().used === 1);
  const answers = [
    database.prisma.room.count(),
    database.hot.$queryRaw`SELECT 1`,
    database.transaction((tx) => tx.$queryRaw`SELECT 1`),
  ].map(outcome);
  await eventually(() => database.connections().waiting === 3);
  letGo();
  standStill();
  expect((await Promise.all(answers)).map(({ result }) => result)).toEqual(['done', 'done', 'done']);
  await holding;
});

test('a connection that was being opened while the process stood still is opened anew', async () => {
  const database = open();
  const answer = outcome(database.ping());
  standStill();
  expect((await answer).result).toBe('done');
});

test('an answer that came while the process stood still is taken', async () => {
  const database = open();
  await database.ping();
  const answer = outcome(database.hot.$queryRaw`SELECT 1 FROM pg_sleep(0.2)`);
  // By then it has been sent.
  await turn();
  standStill();
  expect((await answer).result).toBe('done');
});

test('a transaction in which the process stood still goes on and commits', async () => {
  const database = open();
  await database.transaction(async (tx) => {
    await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await tx.$executeRaw`CREATE TABLE stood_still (n int)`;
    standStill();
    await tx.$executeRaw`INSERT INTO stood_still VALUES (1)`;
  });
  expect(await reader.prisma.$queryRaw`SELECT n FROM stood_still`).toEqual([{ n: 1 }]);
});

test('a transaction that PostgreSQL ended meanwhile is unavailable, and its connection is replaced', async () => {
  const database = open();
  const answer = outcome(
    database.transaction(async (tx) => {
      await tx.$executeRaw`CREATE TABLE never (n int)`;
      standStill();
      await tx.$executeRaw`INSERT INTO never VALUES (1)`;
    }),
  );
  expect((await answer).result).toBe('unavailable');
  expect(await reader.prisma.$queryRaw`SELECT to_regclass('never')::text AS name`).toEqual([{ name: null }]);
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
