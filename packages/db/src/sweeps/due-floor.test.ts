import { randomBytes } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PATIENT_DEADLINES, stopAtEnd } from '@callplane/testing';
import pg from 'pg';
import { buffersOf } from '../client/buffers.testkit.js';
import { Database, type TypedSql } from '../client/database.js';
import { holdSnapshot } from '../client/held-snapshot.testkit.js';
import { Prisma } from '../generated/client.js';
import { startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { claimDueDeliveries } from '../webhooks/due-deliveries.js';
import { scanBacklogs, scanNewlyDue } from '../webhooks/due-endpoints.js';
import { endExpiredLeases, expireRuns, firstLeaseExpiry, firstOldRun } from '../webhooks/delivery-sweep.js';
import { moveDueFloor, type FloorMove } from './due-floor.js';
import { DUE_SOURCES } from './due.sql.js';
import { BEGINNING } from './slices.js';

const DAY_MS = 86_400_000;
const [A, B] = ['whep_a', 'whep_b'];
/** Moves the floor without a full check. */
const move = (more: FloorMove = {}) => moveDueFloor(database, 'deliveries', { checkEveryMs: Infinity, ...more });
const check = () => moveDueFloor(database, 'deliveries', { checkEveryMs: 0 });

let rooms: TestRooms;
let database: Database;
let url: string;
/** Like the database of a worker. */
let indexed: Database;
beforeAll(async () => {
  rooms = await startTestRooms();
  ({ database, databaseUrl: url } = rooms);
  indexed = new Database({ url, poolMax: 2, indexesOnly: true, deadlines: PATIENT_DEADLINES });
  stopAtEnd(() => indexed.close());
  await rooms.sql(`
    INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at)
    SELECT unnest(ARRAY['${A}', '${B}']), '${rooms.tenant.environmentId}', 'https://example.com/', '{*}', true, 1, now(), now()`);
  await rooms.sql(`INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
    SELECT id, 1, 's1.k1.x', now() FROM webhook_endpoints`);
  await rooms.sql(`INSERT INTO events (id, environment_id, type, body, created_at)
    VALUES ('evt_1', '${rooms.tenant.environmentId}', 'webhook.test', '{}', now())`);
});
beforeEach(() =>
  rooms.sql('TRUNCATE webhook_deliveries, webhook_attempts, runtime_operations, due_floors, due_backlogs CASCADE'),
);

/** Inserts pending deliveries `dlv_<name>1`… that were due `ago` and shortly after. */
const insertion = (name: string, ago: string, { endpointId = A, count = 1 } = {}) => `
  INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, due_at, created_at)
  SELECT 'dlv_${name}' || n, '${rooms.tenant.environmentId}', '${endpointId}', 'evt_1', 'webhook.test', 'pending',
    now() - interval '${ago}' + n * interval '1 millisecond', now() FROM generate_series(1, ${count}) n`;
const add = (name: string, ago: string, more: { endpointId?: string; count?: number } = {}) =>
  rooms.sql(insertion(name, ago, more));
const finish = (name: string) =>
  rooms.sql(`UPDATE webhook_deliveries SET status = 'succeeded', completed_at = now(), lease_token = NULL,
    lease_expires_at = NULL WHERE id LIKE 'dlv_${name}%'`);
const backlogs = () => database.prisma.dueBacklog.findMany({ orderBy: [{ key: 'asc' }, { isRetry: 'asc' }] });
const dueAt = async (id: string) => (await database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id } })).dueAt;
const floor = async () => (await database.prisma.dueFloor.findUniqueOrThrow({ where: { queue: 'deliveries' } })).floor;

/** The endpoints that a scan finds. */
async function found(): Promise<string[]> {
  const [newly, old] = [await scanNewlyDue(database.sql, null, 100), await scanBacklogs(database.sql, '', 100)];
  return [...new Set([...newly.due, ...old.due].map(({ endpointId }) => endpointId))].sort();
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  stopAtEnd(() => client.end());
  return client;
}

describe('scans while a transaction holds an old snapshot', () => {
  const statements: Record<string, (db: TypedSql) => PromiseLike<unknown>> = {
    'scan of newly due deliveries': (db) => scanNewlyDue(db, null, 100),
    'scan of backlogs': (db) => scanBacklogs(db, '', 100),
    'move of the floor': (db) =>
      moveDueFloor({ sqlTransaction: (work) => work(db) }, 'deliveries', { checkEveryMs: Infinity }),
  };
  const measure = async (): Promise<Record<string, number>> => {
    await move();
    const from = await firstLeaseExpiry(database.sql, BEGINNING);
    const [mark] = [(await scanNewlyDue(database.sql, null, 1)).floor];
    const costs: Record<string, number> = {};
    for (const [name, run] of Object.entries(statements)) costs[name] = await buffersOf(indexed, run);
    costs['sweep of leases'] = await buffersOf(indexed, (db) => endExpiredLeases(db, 60_000, 100, { from }));
    const runsFrom = await firstOldRun(database.sql, DAY_MS, null);
    costs['sweep of runs'] = await buffersOf(indexed, (db) => expireRuns(db, DAY_MS, 100, runsFrom));
    costs['claim'] = await buffersOf(indexed, (db) =>
      claimDueDeliveries(db, [{ endpointId: A, isRetry: false, count: 4, since: mark }], 60_000),
    );
    return costs;
  };
  /** Deliveries that became due, were claimed and finished. */
  const finishMany = async (name: string, count: number): Promise<void> => {
    await add(name, '1 hour', { count });
    await rooms.sql(`UPDATE webhook_deliveries SET status = 'delivering', run_attempts = 1,
      lease_token = gen_random_uuid(), lease_expires_at = due_at WHERE id LIKE 'dlv_${name}%'`);
    await finish(name);
  };

  test('touch no more buffers however much has finished behind it', async () => {
    await check();
    await finishMany('first', 10);
    await rooms.sql('ANALYZE webhook_deliveries');
    const holder = await holdSnapshot(url);
    const before = await measure();
    await finishMany('many', 10_000);
    const after = await measure();
    // A level more of an index costs a buffer for each search.
    const grown = Object.entries(after).filter(([name, buffers]) => buffers > before[name]! * 2 + 20);
    expect({ grown, before }).toEqual({ grown: [], before });
    // The same statements from the beginning read what has finished: the comparison above can fail.
    await rooms.sql('TRUNCATE due_floors');
    const fromBeginning = {
      'scan of newly due deliveries': await buffersOf(indexed, statements['scan of newly due deliveries']!),
      'sweep of leases': await buffersOf(indexed, (db) => endExpiredLeases(db, 60_000, 100)),
    };
    const flat = Object.entries(fromBeginning).filter(([name, buffers]) => buffers <= before[name]! * 2 + 20);
    expect({ flat, fromBeginning }).toEqual({ flat: [], fromBeginning });
    await holder.query('ROLLBACK');
  });

  test('a search for the first delivery of an endpoint cannot read what others have finished', async () => {
    const first = DUE_SOURCES.deliveries.firstOf(Prisma.sql`due_at < now()`);
    const indexesOf = (tx: TypedSql) =>
      tx
        .$queryRaw(Prisma.sql`EXPLAIN SELECT (${first}) FROM (SELECT ${A} AS key, false AS is_retry) AS k`)
        .then((plan) => JSON.stringify(plan).match(/webhook_deliveries_\w+_idx/g));
    const undone = new Error('undone');
    const explained = indexed.sqlTransaction(async (tx) => {
      expect(await indexesOf(tx)).toEqual(['webhook_deliveries_due_idx']);
      // PostgreSQL has no other choice, whatever its statistics say.
      await tx.$executeRaw`DROP INDEX webhook_deliveries_due_idx`;
      expect(await indexesOf(tx)).not.toContain('webhook_deliveries_due_time_idx');
      throw undone;
    });
    await expect(explained).rejects.toBe(undone);
  });

  test('a full check reads each finished delivery once, however many endpoints have a backlog', async () => {
    await check();
    const endpoints = Array.from({ length: 20 }, (_, n) => `whep_many${n}`);
    await rooms.sql(`
      INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at)
      SELECT unnest('{${endpoints.join()}}'::text[]), '${rooms.tenant.environmentId}', 'https://example.com/', '{*}', true, 1, now(), now()`);
    const holder = await holdSnapshot(url);
    await add('finished', '1 hour', { count: 2000 });
    await finish('finished');
    const full = (db: TypedSql) =>
      moveDueFloor({ sqlTransaction: (work) => work(db) }, 'deliveries', { checkEveryMs: 0 });
    const few = await buffersOf(indexed, full);
    for (const [n, endpointId] of endpoints.entries()) await add(`open${n}_`, '10 minutes', { endpointId });
    await rooms.sql('ANALYZE webhook_deliveries');
    expect(await buffersOf(indexed, full)).toBeLessThan(few * 2);
    await check();
    expect((await backlogs()).map(({ key }) => key)).toEqual([...endpoints].sort());
    await holder.query('ROLLBACK');
    await rooms.sql(`DELETE FROM webhook_deliveries; DELETE FROM webhook_endpoints WHERE id LIKE 'whep_many%'`);
  });
});

describe('the floor of due deliveries', () => {
  test('without a floor, scans find all due deliveries', async () => {
    await add('old', '3 days');
    await add('future', '-1 hour', { endpointId: B });
    expect(await found()).toEqual([A]);
    expect((await scanNewlyDue(database.sql, null, 100)).floor).toBeNull();
  });

  test('a delivery that is pending when the floor passes it becomes a backlog, until it is claimed', async () => {
    await check();
    await rooms.sql(`UPDATE due_floors SET floor = now() - interval '10 minutes'`);
    await add('old', '5 minutes', { count: 2 });
    await add('new', '1 second', { endpointId: B });
    await move();
    expect(await backlogs()).toEqual([{ queue: 'deliveries', key: A, isRetry: false, since: await dueAt('dlv_old1') }]);
    expect((await scanBacklogs(database.sql, '', 100)).due).toMatchObject([
      { endpointId: A, first: true, retry: false },
    ]);
    expect(await found()).toEqual([A, B]);

    const request = { endpointId: A, isRetry: false, count: 1, since: (await backlogs())[0]!.since };
    await claimDueDeliveries(database.sql, [request], 60_000);
    await move();
    expect(await backlogs()).toMatchObject([{ key: A, since: await dueAt('dlv_old2') }]);
    await claimDueDeliveries(database.sql, [request], 60_000);
    await move();
    expect([await backlogs(), await found()]).toEqual([[], [B]]);
  });

  test('a delivery whose transaction has written and not committed holds the floor back', async () => {
    await check();
    const writer = await connect();
    await writer.query('BEGIN');
    await writer.query(insertion('late', '0'));
    const { rows } = await writer.query<{ at: Date }>('SELECT now() AS at');
    await move({ lateMs: 0 });
    expect((await floor()).getTime()).toBeLessThanOrEqual(rows[0]!.at.getTime());
    await writer.query('COMMIT');
    await move({ lateMs: 0 });
    expect(await floor()).toEqual(expect.any(Date));
    expect((await floor()).getTime()).toBeGreaterThan(rows[0]!.at.getTime());
    expect(await backlogs()).toMatchObject([{ key: A }]);
  });

  test('a delivery of a transaction whose beginning is hidden keeps the floor where it is', async () => {
    const role = `mover_${randomBytes(6).toString('hex')}`;
    await rooms.sql(`CREATE ROLE ${role}`);
    await rooms.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries, due_floors, due_backlogs TO ${role}`);
    const moveAsRole = (more: FloorMove = {}) =>
      moveDueFloor(
        {
          sqlTransaction: (work) =>
            database.sqlTransaction(async (tx) => {
              await tx.$executeRaw(Prisma.sql`SET LOCAL ROLE ${Prisma.raw(role)}`);
              return work(tx);
            }),
        },
        'deliveries',
        { checkEveryMs: Infinity, ...more },
      );
    await check();
    const writer = await connect();
    await writer.query('BEGIN');
    await writer.query(insertion('hidden', '0'));
    const { floor: before } = await moveAsRole();
    expect((await moveAsRole({ lateMs: 0 })).floor).toEqual(before);
    await writer.query('COMMIT');
    expect((await moveAsRole({ lateMs: 0 })).floor.getTime()).toBeGreaterThan(before.getTime());
    expect(await backlogs()).toMatchObject([{ key: A }]);
    await rooms.sql(`DROP OWNED BY ${role}`);
    await rooms.sql(`DROP ROLE ${role}`);
  });

  test('a claim that is rolled back after the floor has passed leaves a backlog', async () => {
    await check();
    await rooms.sql(`UPDATE due_floors SET floor = now() - interval '10 minutes'`);
    await add('locked', '5 minutes');
    const claimer = await connect();
    await claimer.query('BEGIN');
    await claimer.query(`UPDATE webhook_deliveries SET status = 'delivering', run_attempts = 1,
      lease_token = gen_random_uuid(), lease_expires_at = now() WHERE id = 'dlv_locked1'`);
    // Its transaction has written, so it would hold the floor back; one that began after the delivery was due does not.
    await move();
    await claimer.query('ROLLBACK');
    await move();
    expect(await found()).toEqual([A]);
  });

  test('a retry, a replay and an expired lease are due above the floor', async () => {
    await check();
    await add('done', '2 days', { count: 3 });
    await finish('done');
    await rooms.sql(`UPDATE webhook_deliveries SET status = 'delivering', completed_at = NULL, url = '', secret_version = 1, run_attempts = 1,
      lease_token = gen_random_uuid(), lease_expires_at = now() - interval '1 minute' WHERE id = 'dlv_done1'`);
    await move();
    expect(await found()).toEqual([]);
    await endExpiredLeases(database.sql, 60_000, 10);
    expect(await found()).toEqual([A]);
    expect((await dueAt('dlv_done1')) > (await floor())).toBe(true);
  });

  test('a delivery that comes below the floor against the rules is found by the next full check', async () => {
    await check();
    await add('moved', '1 hour');
    await move();
    expect(await found()).toEqual([]);
    expect(await check()).toMatchObject({ isChecked: true });
    expect(await found()).toEqual([A]);
  });

  test('a full check completes although PostgreSQL cancels some of its statements', async () => {
    await check();
    await add('moved', '3 hours');
    let transactions = 0;
    const late = {
      sqlTransaction: <T>(work: (tx: TypedSql) => Promise<T>): Promise<T> => {
        transactions += 1;
        if (transactions === 4) throw Object.assign(new Error('canceled'), { code: '57014' });
        return database.sqlTransaction(work);
      },
    };
    expect(await moveDueFloor(late, 'deliveries', { checkEveryMs: 0 })).toMatchObject({ isChecked: true });
    expect(await found()).toEqual([A]);
  });

  test('a full check that is stopped moves no floor, and is repeated', async () => {
    await check();
    await add('moved', '1 hour');
    const before = await floor();
    const stopped = await moveDueFloor(database, 'deliveries', { checkEveryMs: 0, signal: AbortSignal.abort() });
    expect(stopped).toEqual({ floor: before, isChecked: false });
    expect([await floor(), await found()]).toEqual([before, []]);
    await check();
    expect(await found()).toEqual([A]);
  });

  test('readers and the next move follow a clock that was set back', async () => {
    await check();
    await rooms.sql(`UPDATE due_floors SET floor = now() + interval '1 hour'`);
    await add('new', '1 second');
    expect(await found()).toEqual([A]);
    await move();
    expect((await floor()).getTime()).toBeLessThan(Date.now());
    expect(await found()).toEqual([A]);
  });

  test('the floor catches up after hours without a worker, and misses no delivery of that time', async () => {
    await check();
    await rooms.sql(`UPDATE due_floors SET floor = now() - interval '5 hours'`);
    await add('early', '4 hours');
    await add('later', '90 minutes', { endpointId: B });
    const { floor: reached } = await move();
    expect(Date.now() - reached.getTime()).toBeLessThan(3_600_000);
    expect((await backlogs()).map(({ key }) => key)).toEqual([A, B]);
  });

  test('the backlog of a disabled endpoint is kept, and found once the endpoint is enabled', async () => {
    await check();
    await rooms.sql(`UPDATE due_floors SET floor = now() - interval '10 minutes'`);
    await add('held', '5 minutes');
    await rooms.sql(`UPDATE webhook_endpoints SET enabled = false WHERE id = '${A}'`);
    await move();
    const { backlogs: known, due } = await scanBacklogs(database.sql, '', 100);
    expect([known, due]).toMatchObject([[{ endpointId: A }], []]);
    await rooms.sql(`UPDATE webhook_endpoints SET enabled = true WHERE id = '${A}'`);
    expect(await found()).toEqual([A]);
  });

  test('a scan of more deliveries than its limit continues where it ended', async () => {
    await check();
    await add('a', '10 seconds', { count: 3 });
    await add('b', '5 seconds', { endpointId: B });
    const first = await scanNewlyDue(database.sql, null, 3);
    expect(first).toMatchObject({ due: [{ endpointId: A }], isMore: true });
    const second = await scanNewlyDue(database.sql, first.next, 3);
    expect(second).toMatchObject({ due: expect.arrayContaining([expect.objectContaining({ endpointId: B })]) });
  });
});
