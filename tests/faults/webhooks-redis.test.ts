import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS, type TestApp } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import { closedGate, startReceiver, startWebhookStack, type Receiver, type WebhookStack } from './webhooks.testkit.js';

let stack: WebhookStack;
let api: TestApp;
let worker: TestApp;
let receiver: Receiver;
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  api = await stack.spawnApi();
  await stack.register(api, receiver);
});
afterEach(() => receiver.check());

const newRooms = (count: number) => Promise.all(Array.from({ length: count }, () => stack.newRoom(api)));

/** No fault of Redis costs a lease, so no delivery may be sent twice. */
async function eachArrivesOnce(rooms: string[]): Promise<void> {
  await stack.allDelivered();
  expect([...receiver.rooms('room.created').keys()]).toEqual(expect.arrayContaining(rooms));
  expect(new Set(receiver.counts().values())).toEqual(new Set([1]));
}

test('pending deliveries arrive although Redis is emptied', async () => {
  const rooms = await newRooms(20);
  // An endpoint has one turn, independent of the number of its deliveries.
  await eventually(async () => (await stack.producer.waitingCount(['webhook-delivery-slow'])) === 1);
  await stack.producer.redis.flushall();
  // The production interval.
  worker = await stack.spawnWebhookWorker({ SWEEP_INTERVAL_MS: '5000' });
  await eachArrivesOnce(rooms);
});

/** The contract allows 15 s. The outages last longer, so new deliveries must arrive without Redis. */
const WITHIN_MS = 15_000;

test.each(REDIS_FAULTS)(
  'deliveries arrive within 15 s while Redis is %s, and none is sent twice when it returns',
  async (fault) => {
    const gate = closedGate();
    const known = receiver.requests.length;
    receiver.answer = () => gate.opened.then(() => 200);
    const rooms = await newRooms(3);
    await eventually(() => receiver.requests.length > known);
    const repair = await breakRedis(stack.redis, fault);
    gate.open();
    const startedAt = performance.now();
    rooms.push(...(await newRooms(10)));
    await stack.allDelivered(WITHIN_MS + 5000);
    const tookMs = performance.now() - startedAt;
    await repair();
    rooms.push(...(await newRooms(2)));
    await eachArrivesOnce(rooms);
    receiver.answer = () => 200;
    measured({ 'ms until all was delivered without Redis': tookMs });
    expect(tookMs).toBeLessThan(WITHIN_MS);
  },
);

test('a Redis that is killed and returns empty loses neither pending deliveries nor a retry', async () => {
  receiver.answer = ({ event }) => (receiver.counts().get(event.id) === 1 ? 503 : 200);
  const [retried] = await newRooms(1);
  await eventually(async () => {
    const [row] = await stack.database.prisma.webhookDelivery.findMany({
      where: { status: 'pending', runAttempts: 1 },
    });
    return row !== undefined;
  });
  receiver.answer = () => 200;
  stack.redis.kill('SIGKILL');
  await eventually(() => api.logs.some(({ message }) => message === 'redis connection lost'));
  const rooms = await newRooms(10);
  await stack.redis.start();
  await eventually(() => stack.producer.redis.flushall());
  // Makes the retry due earlier than the worker expects.
  await stack.database.prisma.$executeRaw`
    UPDATE webhook_deliveries SET due_at = now() - interval '1 second' WHERE status = 'pending' AND run_attempts = 1`;
  await stack.allDelivered();
  const arrived = receiver.rooms('room.created');
  expect([...arrived.keys()]).toEqual(expect.arrayContaining(rooms));
  expect([...arrived].filter(([, count]) => count > 1)).toEqual([[retried, 2]]);
  // The fast path works again without a restart.
  const startedAt = performance.now();
  await newRooms(1);
  await stack.allDelivered();
  expect(performance.now() - startedAt).toBeLessThan(WITHIN_MS);
  expect(worker.output()).not.toContain('process failed');
});
