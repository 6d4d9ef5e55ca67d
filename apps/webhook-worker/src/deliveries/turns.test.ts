import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { JobWorkers, QUEUE_OF_LANE, readQueueDepths, type TurnJob } from '@callplane/queue';
import { eventually } from '@callplane/testing';
import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.js';
import { startReceiver, startTarPit } from '../receivers.testkit.js';
import { startTestWorker, type TestWorker } from '../worker.testkit.js';
import { Scan } from './scan.js';
import { sendDue } from './send-due.js';
import { Turns } from './turns.js';

/** Deadline of an attempt in these tests, a fifth of the contract's 10 s. */
const DEADLINE_MS = 2000;

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker({ deliveryDeadlineMs: DEADLINE_MS });
});
beforeEach(async () => {
  await worker.sql(
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts, events, webhook_recoveries CASCADE',
  );
  await eventually(() => worker.deps.producer.health.probe().then(() => worker.deps.producer.health.trouble === null));
  await worker.deps.producer.redis.flushall();
});

const started: { stop(): Promise<void> }[] = [];
afterEach(() => Promise.all(started.splice(0).map((each) => each.stop())));

/** Starts a worker that takes turns from Redis. */
function start(deps: Deps = worker.deps): { turns: Turns; stop(): Promise<void> } {
  const turns = new Turns(deps);
  const workers = new JobWorkers<TurnJob>({
    redisUrl: worker.redis.url,
    queues: { [QUEUE_OF_LANE.fast]: 8, [QUEUE_OF_LANE.slow]: 3 },
    work: (job, handed) => turns.take(job, handed),
    events: { onLost: () => undefined, onReady: () => undefined, onFailed: () => undefined },
  });
  const stop = async (): Promise<void> => {
    await workers.stop();
    await turns.drain();
    await workers.close();
  };
  started.push({ stop });
  return { turns, stop };
}

const emit = async (endpointId: string, count = 1) => {
  const rows = await worker.emit(endpointId, count);
  await worker.deps.producer.wakeDeliveries(rows);
  return rows.map(({ id }) => id);
};
async function newEnvironment(): Promise<string> {
  const id = newId('environment');
  const { projectId } = worker.tenant;
  await worker.deps.database.prisma.environment.create({ data: { id, projectId, name: id, createdAt: new Date() } });
  return id;
}
const count = (where: object = {}) => worker.deps.database.prisma.webhookDelivery.count({ where });

test.each([2, 2 ** 31, Number.MAX_SAFE_INTEGER])(
  'a turn with %d stalls takes over the leases of its latest workers alone',
  async (run) => {
    const { turns } = start();
    const receiver = await startReceiver((_request, response) => response.end());
    const endpointId = await worker.newEndpoint(receiver.url, { slotMs: 200 });
    const [{ id } = { id: '' }] = await worker.emit(endpointId, 1);
    const turn = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaa0000';
    const before = turn.slice(0, -4) + ((run - 1) % 0x10000).toString(16).padStart(4, '0');
    await worker.deps.database.prisma.webhookDelivery.update({
      where: { id },
      data: {
        ...{ status: 'delivering', runAttempts: 1, url: receiver.url, secretVersion: 1 },
        ...{ leaseToken: before, leaseExpiresAt: new Date(Date.now() + 3_600_000) },
      },
    });
    const { environmentId } = await worker.deps.database.prisma.webhookEndpoint.findUniqueOrThrow({
      where: { id: endpointId },
    });
    const job: TurnJob = { turn, endpointId, environmentId, slotMs: 200, lane: 'fast', ticket: 0 };
    await turns.take(job, { queue: 'webhook-delivery', priority: 1, run, isStalled: true });
    await eventually(async () => (await count({ status: 'succeeded' })) === 1);
  },
);

test('one endpoint uses all four slots, but no more, and Redis shows its turns as active meanwhile', async () => {
  const { turns } = start();
  const answers: (() => void)[] = [];
  const receiver = await startReceiver((_request, response) => void answers.push(() => response.end()));
  const endpointId = await worker.newEndpoint(receiver.url, { slotMs: 200 });
  await emit(endpointId, 20);
  await eventually(() => answers.length === 4);
  expect(turns.inUse).toBe(4);
  // The getters of BullMQ, which dashboards use, too.
  const depth = async () =>
    (await readQueueDepths(worker.redis.url)).find(({ queue }) => queue === 'webhook-delivery')!;
  expect((await depth()).active).toBeGreaterThanOrEqual(4);
  expect(await count({ status: 'delivering' })).toBe(4);
  expect(await count({ status: 'pending', runAttempts: 0 })).toBe(16);
  for (let done = 0; done < 20; done += 1) {
    await eventually(() => answers.length > 0);
    answers.shift()!();
  }
  await eventually(async () => (await count({ status: 'succeeded' })) === 20);
  expect(receiver.requests).toHaveLength(20);
  // After a slow claim that found nothing, a turn comes back once more.
  await eventually(async () => {
    expect(await depth()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
    return true;
  });
});

test('a turn claims no more deliveries than it can send', async () => {
  const answers: (() => void)[] = [];
  const receiver = await startReceiver((_request, response) => void answers.push(() => response.end()));
  const endpointId = await worker.newEndpoint(receiver.url, { slotMs: 64 });
  const [{ environmentId } = { environmentId: '' }] = await worker.emit(endpointId, 8);
  const durationsMs = new LRUCache<string, number>({ max: 1 });
  durationsMs.set(endpointId, 100);
  let isDraining = false;
  const context = {
    ...{ deps: worker.deps, lastRooms: new LRUCache<string, string>({ max: 1 }), durationsMs },
    ...{ isDraining: () => isDraining, onMore: () => undefined, onSlow: () => undefined, onQuick: () => undefined },
  };
  const turn = randomUUID();
  const sent = sendDue(context, { turn, endpointId, environmentId, slotMs: 64, lane: 'fast', ticket: 0 }, turn);
  await eventually(() => answers.length === 1);
  // A turn sends for 250 ms.
  expect(await count({ status: 'delivering' })).toBe(3);
  isDraining = true;
  answers[0]!();
  await Promise.all((await sent).settling);
});

test('a tenant whose proven endpoints begin to hang holds three of four slots beside another tenant', async () => {
  start({ ...worker.deps, deliveryDeadlineMs: 60_000 });
  const pit = await startTarPit();
  const good = await startReceiver();
  const other = await worker.newEndpoint(good.url, { environmentId: await newEnvironment(), slotMs: 64 });
  await emit(other);
  await eventually(() => good.requests.length === 1);
  for (let n = 0; n < 6; n += 1) await emit(await worker.newEndpoint(`${pit.url}/${n}`, { slotMs: 64 }));
  await eventually(() => pit.requests.length === 3);
  await emit(other);
  await eventually(() => good.requests.length === 2);
  expect(pit.requests).toHaveLength(3);
  await pit.close();
});

test('a slow endpoint waits for no turns of a tenant that has used the slow lane, although those are never tried', async () => {
  start();
  const pit = await startTarPit();
  for (let n = 0; n < 30; n += 1) await emit(await worker.newEndpoint(`${pit.url}/${n}`));
  // The first three have hung: their environment has used more than new endpoints may.
  await eventually(() => pit.requests.length >= 6);
  const slow = await startReceiver();
  await emit(await worker.newEndpoint(slow.url, { environmentId: await newEnvironment(), slotMs: 1200 }));
  await eventually(() => slow.requests.length === 1);
  expect(pit.requests.length).toBeLessThan(12);
  await pit.close();
});

test('draining starts no attempts, releases claimed deliveries and leaves the rest to another worker', async () => {
  const first = start();
  const receiver = await startReceiver((_request, response) => void setTimeout(() => response.end(), 60));
  const endpointId = await worker.newEndpoint(receiver.url, { slotMs: 64 });
  await emit(endpointId, 30);
  await eventually(() => receiver.requests.length > 1);
  await first.stop();
  const sent = receiver.requests.length;
  expect(sent).toBeLessThan(30);
  expect(await count({ status: 'succeeded' })).toBe(sent);
  expect(await count({ status: 'pending', runAttempts: 0, leaseToken: null })).toBe(30 - sent);
  start();
  await eventually(async () => (await count({ status: 'succeeded' })) === 30);
  expect(receiver.requests).toHaveLength(30);
});

test('a claim that fails leaves the deliveries of other endpoints to be sent, and a scan finds its own', async () => {
  const { database } = worker.deps;
  const receiver = await startReceiver();
  const [failing, other] = [
    await worker.newEndpoint(`${receiver.url}/a`, { slotMs: 64 }),
    await worker.newEndpoint(`${receiver.url}/b`, { slotMs: 64 }),
  ];
  let isFailing = true;
  const sql: Deps['database']['sql'] = {
    ...database.sql,
    $queryRaw: (query: TemplateStringsArray, ...values: unknown[]) =>
      isFailing && values.includes(failing)
        ? Promise.reject(new Error('no claim'))
        : database.sql.$queryRaw(query, ...values),
  };
  const deps = { ...worker.deps, database: Object.create(database, { sql: { value: sql } }) };
  const { turns } = start(deps);
  await emit(failing);
  await emit(other);
  await eventually(async () => (await count({ endpointId: other, status: 'succeeded' })) === 1);
  await eventually(() => worker.lines.some(({ message }) => message === 'claim failed'));
  expect(await count({ endpointId: failing, status: 'pending', runAttempts: 0 })).toBe(1);
  isFailing = false;
  await new Scan(deps, turns, 0).scan(true);
  await eventually(async () => (await count({ endpointId: failing, status: 'succeeded' })) === 1);
  expect(await count({ runAttempts: 1 })).toBe(2);
});

test('a scan finds deliveries without a job, and skips disabled endpoints and later retries', async () => {
  const { turns } = start();
  const receiver = await startReceiver();
  for (let n = 0; n < 3; n += 1) await worker.emit(await worker.newEndpoint(`${receiver.url}/${n}`), 4);
  await worker.emit(await worker.newEndpoint(receiver.url, { enabled: false }), 3);
  const [later] = await worker.emit(await worker.newEndpoint(receiver.url));
  await worker.sql(
    `UPDATE webhook_deliveries SET due_at = now() + interval '1 h', run_attempts = 1 WHERE id = '${later!.id}'`,
  );
  await new Scan(worker.deps, turns, 0).scan(true);
  await eventually(async () => (await count({ status: 'succeeded' })) === 12);
  expect(receiver.requests).toHaveLength(12);
  expect(worker.lines.filter(({ message }) => message === 'endpoints found by scan').at(-1)).toMatchObject({
    count: 3,
  });
});

test('without Redis a scan runs the turns itself, in four slots', async () => {
  const away = { trouble: 'unreachable' };
  const producer = Object.create(worker.deps.producer, { health: { value: away } });
  const deps = { ...worker.deps, producer };
  const turns = new Turns(deps);
  started.push({ stop: () => turns.drain() });
  let most = 0;
  const receiver = await startReceiver((_request, response) => {
    most = Math.max(most, turns.inUse);
    setTimeout(() => response.end(), 5);
  });
  const quick = await worker.newEndpoint(`${receiver.url}/quick`, { slotMs: 64 });
  const fresh = await worker.newEndpoint(`${receiver.url}/fresh`);
  await worker.emit(quick, 100);
  await worker.emit(fresh, 3);
  const scan = new Scan(deps, turns, 0);
  await eventually(async () => {
    await scan.scan(false);
    return (await count({ status: 'succeeded' })) === 103;
  });
  expect(most).toBe(4);
  expect(receiver.requests).toHaveLength(103);
});

test('without Redis three turns of the slow lane run at once, and none that waits begins once Redis is back', async () => {
  const health = { trouble: 'unreachable' as string | null };
  const deps = { ...worker.deps, producer: Object.create(worker.deps.producer, { health: { value: health } }) };
  const turns = new Turns(deps);
  started.push({ stop: () => turns.drain() });
  const answers: (() => void)[] = [];
  const receiver = await startReceiver((_request, response) => void answers.push(() => response.end()));
  for (let n = 0; n < 30; n += 1) await worker.emit(await worker.newEndpoint(receiver.url), 1);
  const scan = new Scan(deps, turns, 0);
  const untilOver = (requests: number) =>
    eventually(() => {
      for (const answer of answers.splice(0)) answer();
      return receiver.requests.length === requests && turns.inUse === 0;
    });
  await scan.scan(false);
  await eventually(() => answers.length === 3);
  health.trouble = null;
  await untilOver(3);
  health.trouble = 'unreachable';
  await scan.scan(false);
  await untilOver(30);
});

test('no delivery is lost that is committed while a turn of its endpoint ends', async () => {
  start();
  const receiver = await startReceiver();
  const endpointId = await worker.newEndpoint(receiver.url);
  for (let n = 0; n < 150; n += 1) await emit(endpointId);
  await eventually(() => receiver.requests.length === 150);
});
