import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
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
}, 60_000);
afterEach(() => receiver.check());

const newRooms = (count: number) => Promise.all(Array.from({ length: count }, () => stack.newRoom(api)));

/** No fault of Redis costs a lease, so there is no reason to send anything twice. */
async function eachArrivesOnce(rooms: string[]): Promise<void> {
  await stack.allDelivered();
  expect([...receiver.rooms('room.created').keys()]).toEqual(expect.arrayContaining(rooms));
  expect(new Set(receiver.counts().values())).toEqual(new Set([1]));
}

test('deliveries that wait arrive although Redis is emptied', async () => {
  const rooms = await newRooms(20);
  await eventually(async () => (await stack.producer.waitingCount(['webhook-delivery'])) === 20);
  await stack.producer.redis.flushall();
  worker = await stack.spawnWebhookWorker();
  await stack.ageDeliveries();
  await eachArrivesOnce(rooms);
});

test('a Redis that freezes delays what waits until it thaws, and what is under way not at all', async () => {
  const gate = closedGate();
  const known = receiver.requests.length;
  receiver.answer = () => gate.opened.then(() => 200);
  const rooms = await newRooms(3);
  await eventually(() => receiver.requests.length === known + 3);
  stack.redis.freeze();
  gate.open();
  await stack.allDelivered();
  rooms.push(...(await newRooms(10)));
  stack.redis.thaw();
  const thawedAt = performance.now();
  await stack.ageDeliveries();
  await eachArrivesOnce(rooms);
  measured({ 'ms from thaw to the last delivery': performance.now() - thawedAt });
});

test('a Redis that is killed and comes back empty loses neither what waits nor a retry', async () => {
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
  // The retry's time has come; its alarm clock is gone.
  await stack.database.prisma.$executeRaw`
    UPDATE webhook_deliveries SET due_at = now() - interval '1 second', woken_at = now() - interval '1 second' WHERE status = 'pending' AND run_attempts = 1`;
  await stack.ageDeliveries();
  await stack.allDelivered();
  const arrived = receiver.rooms('room.created');
  expect([...arrived.keys()]).toEqual(expect.arrayContaining(rooms));
  expect([...arrived].filter(([, count]) => count > 1)).toEqual([[retried, 2]]);
  // Nothing has to be restarted: the fast path works again.
  const startedAt = performance.now();
  await newRooms(1);
  await stack.allDelivered();
  expect(performance.now() - startedAt).toBeLessThan(5000);
  expect(worker.output()).not.toContain('process fails');
});
