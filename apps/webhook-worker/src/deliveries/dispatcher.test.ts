import { beforeAll, expect, test } from '@jest/globals';
import { JobWorker } from '@callplane/queue';
import { eventually, stopAtEnd } from '@callplane/testing';
import { startReceiver, startTarPit } from '../receivers.testkit.js';
import { startTestWorker, type TestWorker } from '../worker.testkit.js';
import { LOOKERS, type Dispatcher } from './dispatcher.js';

/** A fifth of the contract's 10 s. */
const DEADLINE_MS = 2000;

let worker: TestWorker;
let dispatcher: Dispatcher;
beforeAll(async () => {
  worker = await startTestWorker({ deliveryDeadlineMs: DEADLINE_MS });
  dispatcher = worker.newDispatcher();
  const jobs = new JobWorker({
    redisUrl: worker.redis.url,
    queue: 'webhook-delivery',
    concurrency: LOOKERS,
    leaseSeconds: 60,
    process: ({ deliveryId }) => dispatcher.process(deliveryId),
    events: { onLost: () => undefined, onReady: () => undefined, onJobError: () => undefined },
  });
  stopAtEnd(() => {
    dispatcher.drain();
    return jobs.close();
  });
});

async function emitAndWake(endpointId: string, count: number): Promise<string[]> {
  const rows = await worker.emit(endpointId, count);
  await worker.deps.producer.wakeAll(rows.map((row) => ({ queue: 'webhook-delivery', row })));
  return rows.map(({ id }) => id);
}
const quantile = (values: number[], share: number) =>
  values.sort((a, b) => a - b)[Math.ceil(values.length * share) - 1]!;

test('receivers that hang delay neither a proven endpoint nor a new one', async () => {
  const tarPits = await Promise.all(Array.from({ length: 4 }, startTarPit));
  const [proven, fresh] = await Promise.all([startReceiver(), startReceiver()]);
  // Everything is warm: a process that has just started pays for its first statements.
  await emitAndWake(await worker.newEndpoint((await startReceiver()).url), 1);
  await eventually(async () => (await worker.deps.database.prisma.webhookAttempt.count()) === 1);
  for (const pit of tarPits) await emitAndWake(await worker.newEndpoint(pit.url), 50);
  const provenId = await worker.newEndpoint(proven.url, { proven: true });
  await eventually(() => tarPits.some(({ requests }) => requests.length > 0));

  const lags: number[] = [];
  const freshStartedAt = performance.now();
  await emitAndWake(await worker.newEndpoint(fresh.url), 5);
  for (let n = 0; n < 40; n += 1) {
    const startedAt = performance.now();
    const [id] = await emitAndWake(provenId, 1);
    const arrived = await eventually(
      () => proven.requests.find(({ headers }) => headers['x-service-delivery-id'] === id),
      { intervalMs: 2 },
    );
    lags.push(arrived.at - startedAt);
  }
  await eventually(() => fresh.requests.length === 5);
  // Whoever waited for a slot of theirs would wait for most of their deadline; 200 of them would take minutes. (How
  // long it really takes is measured by `npm run bench -- deliveries`, and in real time by tests/webhooks-isolation.)
  expect(quantile(lags, 0.5)).toBeLessThan(DEADLINE_MS / 4);
  expect(quantile(lags, 0.95)).toBeLessThan(DEADLINE_MS);
  expect(fresh.requests[4]!.at - freshStartedAt).toBeLessThan(5 * DEADLINE_MS);
  // Being postponed costs no attempt: each attempt that is counted was made.
  const [{ counted, made }] = await worker.deps.database.prisma.$queryRaw<[{ counted: number; made: number }]>`
    SELECT (SELECT sum(run_attempts)::int FROM webhook_deliveries WHERE status <> 'delivering') AS counted,
      (SELECT count(*)::int FROM webhook_attempts) AS made`;
  expect(counted).toBe(made);
  expect(dispatcher.known.length).toBeGreaterThan(20);
}, 30_000);

test('draining starts nothing more, gives back what waits, and lets finish what is under way', async () => {
  await worker.deps.producer.redis.flushall();
  const other = worker.newDispatcher();
  const pit = await startTarPit();
  const endpointId = await worker.newEndpoint(pit.url);
  const rows = await worker.emit(endpointId, 6);
  const results = rows.map(({ id }) => other.process(id));
  await eventually(() => pit.requests.length === 2);
  other.drain();
  const ended = await Promise.all(results);
  expect(ended.filter(({ again }) => again)).toHaveLength(4);
  expect(await other.process(rows[0]!.id)).toEqual({ again: true, delayMs: 0 });
  expect(pit.requests).toHaveLength(2);
  expect(other.inUse).toBe(0);
  expect(await worker.deps.database.prisma.webhookAttempt.count({ where: { delivery: { endpointId } } })).toBe(2);
});
