import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { JobWorker } from '@callplane/queue';
import { eventually, stopAtEnd } from '@callplane/testing';
import type { Deps } from '../deps.js';
import { startReceiver, startTarPit } from '../receivers.testkit.js';
import { startTestWorker, type TestWorker } from '../worker.testkit.js';
import { Doorbells } from './doorbells.js';
import { Scan } from './scan.js';
import type { Workers } from './workers.js';

/** Deadline of an attempt in these tests, a fifth of the contract's 10 s. */
const DEADLINE_MS = 2000;

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker({ deliveryDeadlineMs: DEADLINE_MS });
});
beforeEach(() =>
  worker.sql(
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts, events, webhook_recoveries CASCADE',
  ),
);

const started: Workers[] = [];
afterEach(() => Promise.all(started.splice(0).map((scheduler) => scheduler.drain())));

/** Starts a scheduler whose doorbells ring directly, without Redis. */
function start(deps = worker.deps, count = 1): { scheduler: Workers; ring: (endpointId: string) => void } {
  const scheduler = worker.newWorkers(deps, count);
  const doorbells = new Doorbells(deps, scheduler);
  started.push(scheduler);
  return { scheduler, ring: (endpointId) => doorbells.ring([endpointId]) };
}
const count = (where: object = {}) => worker.deps.database.prisma.webhookDelivery.count({ where });
const quantile = (values: number[], share: number) =>
  values.sort((a, b) => a - b)[Math.ceil(values.length * share) - 1]!;

test('hanging receivers delay neither a proven endpoint nor a new one', async () => {
  const { ring } = start();
  const tarPits = await Promise.all(Array.from({ length: 4 }, startTarPit));
  const [proven, fresh] = await Promise.all([startReceiver(), startReceiver()]);
  const emit = async (endpointId: string, deliveries: number) => {
    const rows = await worker.emit(endpointId, deliveries);
    ring(endpointId);
    return rows.map(({ id }) => id);
  };
  for (const pit of tarPits) await emit(await worker.newEndpoint(pit.url), 50);
  const provenId = await worker.newEndpoint(proven.url, { proven: true });
  await eventually(() => tarPits.some(({ requests }) => requests.length > 0));

  const lags: number[] = [];
  const freshStartedAt = performance.now();
  await emit(await worker.newEndpoint(fresh.url), 5);
  for (let n = 0; n < 40; n += 1) {
    const startedAt = performance.now();
    const [id] = await emit(provenId, 1);
    const arrived = await eventually(
      () => proven.requests.find(({ headers }) => headers['x-service-delivery-id'] === id),
      { intervalMs: 2 },
    );
    lags.push(arrived.at - startedAt);
  }
  await eventually(() => fresh.requests.length === 5);
  // A delivery that waits for a slot of a hanging receiver waits for most of the deadline; 200 of them would take
  // minutes. The bounds of the schedule are tested in packages/core, real times in
  // tests/webhooks-isolation.full.test.ts.
  expect(quantile(lags, 0.5)).toBeLessThan(DEADLINE_MS / 2);
  expect(quantile(lags, 0.95)).toBeLessThan(3 * DEADLINE_MS);
  expect(fresh.requests[4]!.at - freshStartedAt).toBeLessThan(10 * DEADLINE_MS);
  // Waiting costs no attempt: every counted attempt was made.
  const [{ counted, made }] = await worker.deps.database.prisma.$queryRaw<[{ counted: number; made: number }]>`
    SELECT (SELECT sum(run_attempts)::int FROM webhook_deliveries WHERE status <> 'delivering') AS counted,
      (SELECT count(*)::int FROM webhook_attempts) AS made`;
  expect(counted).toBe(made);
});

test('one endpoint uses all four slots, but no more, once it has answered quickly', async () => {
  const { scheduler, ring } = start();
  let hold = false;
  const answers: (() => void)[] = [];
  const receiver = await startReceiver((_request, response) => {
    if (hold) answers.push(() => response.end());
    else response.end();
  });
  const endpointId = await worker.newEndpoint(receiver.url);
  await worker.emit(endpointId, 2);
  ring(endpointId);
  await eventually(async () => (await count({ status: 'succeeded' })) === 2);
  hold = true;
  await worker.emit(endpointId, 20);
  ring(endpointId);
  await eventually(() => answers.length === 4);
  expect(scheduler.inUse).toBe(4);
  // At most four more deliveries are claimed ahead. They are released when the receiver hangs.
  expect(await count({ status: 'delivering' })).toBeLessThanOrEqual(8);
  await eventually(async () => (await count({ status: 'delivering' })) === 4);
  expect(await count({ status: 'pending', runAttempts: 0 })).toBe(16);
  hold = false;
  for (const answer of answers.splice(0)) answer();
  await eventually(async () => (await count({ status: 'succeeded' })) === 22);
  expect(receiver.requests).toHaveLength(22);
});

test('draining starts no attempts, releases claimed deliveries and waits for running attempts', async () => {
  const { scheduler, ring } = start();
  const receiver = await startReceiver((_request, response) => void setTimeout(() => response.end(), 300));
  const endpointId = await worker.newEndpoint(receiver.url);
  await worker.emit(endpointId, 1);
  ring(endpointId);
  await eventually(async () => (await count({ status: 'succeeded' })) === 1);
  await worker.emit(endpointId, 12);
  ring(endpointId);
  await eventually(() => receiver.requests.length > 1);
  await scheduler.drain();
  const sent = receiver.requests.length;
  expect(await count({ status: 'succeeded' })).toBe(sent);
  expect(await count({ status: 'pending', runAttempts: 0, leaseToken: null })).toBe(13 - sent);
  expect(scheduler.inUse).toBe(0);
  // A doorbell announces the rest to another worker.
  expect(await worker.deps.producer.redis.exists(`callplane:webhook-delivery:${endpointId}`)).toBe(1);
  ring(endpointId);
  expect(receiver.requests).toHaveLength(sent);
});

test('a delivery whose lease expired while the process was stopped is released without an attempt', async () => {
  // With a lease of 0 ms, every claim has expired when its turn comes.
  const { scheduler, ring } = start({ ...worker.deps, leaseMs: 0 });
  const receiver = await startReceiver();
  const [delivery] = await worker.emit(await worker.newEndpoint(receiver.url));
  ring(delivery!.endpointId);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await scheduler.drain();
  expect(receiver.requests).toHaveLength(0);
  expect(await worker.row(delivery!.id)).toMatchObject({ status: 'pending', runAttempts: 0, leaseToken: null });
});

test('a claim that fails leaves the deliveries of other endpoints to be sent', async () => {
  const { database } = worker.deps;
  const receiver = await startReceiver();
  const [failing, other] = [
    await worker.newEndpoint(`${receiver.url}/a`),
    await worker.newEndpoint(`${receiver.url}/b`),
  ];
  await worker.sql(`UPDATE webhook_endpoints SET max_per_second = 1000`);
  let isFailing = true;
  const failingSql: Deps['database']['sql'] = {
    ...database.sql,
    $queryRaw: (query: TemplateStringsArray, ...values: unknown[]) =>
      isFailing && values.includes(failing) && query.join('').includes('FROM webhook_gates')
        ? Promise.reject(new Error('no claim'))
        : database.sql.$queryRaw(query, ...values),
  };
  const { scheduler } = start({
    ...worker.deps,
    database: Object.create(database, { sql: { value: failingSql } }),
  });
  await worker.emit(failing);
  await worker.emit(other);
  // Both endpoints are known and woken together, so that one round claims for both.
  const doorbells = new Doorbells(worker.deps, scheduler);
  doorbells.ring([failing, other]);
  await eventually(async () => (await count({ endpointId: other, status: 'succeeded' })) === 1);
  expect(await count({ endpointId: failing, status: 'pending', runAttempts: 0 })).toBe(1);
  expect(worker.lines.some(({ message }) => message === 'claim failed')).toBe(true);
  isFailing = false;
  await eventually(async () => (await count({ endpointId: failing, status: 'succeeded' })) === 1);
  expect(await count({ runAttempts: 1 })).toBe(2);
});

test('a due retry needs neither a doorbell nor a scan', async () => {
  const { ring } = start();
  const receiver = await startReceiver((_request, response) => {
    response.writeHead(receiver.requests.length === 1 ? 503 : 200).end();
  });
  const [delivery] = await worker.emit(await worker.newEndpoint(receiver.url));
  ring(delivery!.endpointId);
  await eventually(() => receiver.requests.length === 2);
  const waitedMs = receiver.requests[1]!.at - receiver.requests[0]!.at;
  expect(waitedMs).toBeGreaterThan(4990);
  expect(waitedMs).toBeLessThan(25_000);
});

test('a scan finds deliveries without a doorbell, and skips disabled endpoints and later retries', async () => {
  const { scheduler } = start();
  const receiver = await startReceiver();
  for (let n = 0; n < 3; n += 1) await worker.emit(await worker.newEndpoint(`${receiver.url}/${n}`), 4);
  await worker.emit(await worker.newEndpoint(receiver.url, { enabled: false }), 3);
  const [later] = await worker.emit(await worker.newEndpoint(receiver.url));
  await worker.sql(
    `UPDATE webhook_deliveries SET due_at = now() + interval '1 h', run_attempts = 1 WHERE id = '${later!.id}'`,
  );
  const scan = new Scan(worker.deps, scheduler, 60_000);
  await scan.tick();
  await eventually(async () => (await count({ status: 'succeeded' })) === 12);
  expect(receiver.requests).toHaveLength(12);
  expect(worker.lines.filter(({ message }) => message === 'endpoints found by scan')).toMatchObject([{ count: 3 }]);
  // After a scan that found endpoints, the next one follows soon.
  await worker.emit(later!.endpointId);
  await scan.tick();
  await eventually(() => receiver.requests.length === 13);
});

test('workers whose doorbells ring concurrently share a backlog and send each delivery once', async () => {
  const receiver = await startReceiver((_request, response) => void setTimeout(() => response.end(), 20));
  const endpointId = await worker.newEndpoint(receiver.url, { proven: true });
  await worker.emit(endpointId, 120);
  for (const { ring } of [start(), start(), start()]) ring(endpointId);
  await eventually(async () => (await count({ status: 'succeeded' })) === 120);
  const ids = receiver.requests.map(({ headers }) => headers['x-service-delivery-id']);
  expect([ids.length, new Set(ids).size]).toEqual([120, 120]);
});

test('a full worker passes an endpoint on to the other workers of its process', async () => {
  // The third worker may get the endpoint only once the attempts of the first have lasted for a second.
  const { scheduler, ring } = start({ ...worker.deps, deliveryDeadlineMs: 30_000 }, 3);
  let hold = false;
  const answers: (() => void)[] = [];
  const receiver = await startReceiver((_request, response) => {
    if (hold) answers.push(() => response.end());
    else response.end();
  });
  const endpointId = await worker.newEndpoint(receiver.url);
  await worker.emit(endpointId, 2);
  ring(endpointId);
  await eventually(async () => (await count({ status: 'succeeded' })) === 2);
  hold = true;
  await worker.emit(endpointId, 20);
  ring(endpointId);
  // The endpoint has answered the first worker quickly, so it gets four slots there. Each other worker tries it once,
  // and up to three times once the attempts have lasted for a second.
  await eventually(() => answers.length >= 6);
  expect(scheduler.inUse).toBeLessThanOrEqual(12);
  hold = false;
  for (const answer of answers.splice(0)) answer();
  await eventually(async () => (await count({ status: 'succeeded' })) === 22);
  const ids = receiver.requests.map(({ headers }) => headers['x-service-delivery-id']);
  expect([ids.length, new Set(ids).size]).toEqual([22, 22]);
});

test('no delivery is lost when BullMQ ignores a doorbell because an earlier one still exists', async () => {
  const { deps } = worker;
  const { scheduler } = start();
  const doorbells = new Doorbells(deps, scheduler);
  const jobs = new JobWorker({
    redisUrl: worker.redis.url,
    queue: 'webhook-delivery',
    concurrency: 16,
    lockSeconds: 60,
    process: () => undefined,
    onCompleted: ({ deliveryId }, jobId) => doorbells.received(jobId, deliveryId),
    events: { onLost: () => undefined, onReady: () => undefined, onJobError: () => undefined },
  });
  stopAtEnd(() => jobs.close());
  const receiver = await startReceiver();
  const endpointId = await worker.newEndpoint(receiver.url);
  await eventually(() => deps.producer.redis.status === 'ready');
  for (let n = 0; n < 150; n += 1) await deps.producer.wakeDeliveries(await worker.emit(endpointId));
  await eventually(() => receiver.requests.length === 150);
  // Rings like an API of the previous release, whose job ids name deliveries.
  const [old] = await worker.emit(await worker.newEndpoint(`${receiver.url}/old`));
  doorbells.received(`${old!.id}_r0_a0_w1`, old!.id);
  await eventually(() => receiver.requests.length === 151);
});
