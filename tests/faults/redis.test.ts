import { beforeAll, expect, test } from '@jest/globals';
import { breakRedis, eventually, REDIS_FAULTS, setUsers, type TestApp } from '@callplane/testing';
import { attemptsIn, measured, type Answer } from './faults.testkit.js';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from './webhooks.testkit.js';

/**
 * Commands to Redis have deadlines below a second. A request without one would hang as long as the fault lasts. The rest
 * is for a slow machine.
 */
const RESPONSE_MS_MAX = 10_000;
/** Within which the contract promises an attempt of work whose wake-up is lost. */
const FOUND_WITHIN_MS = 15_000;
/** Rooms that end during a fault: several times as many as a worker completes at once. */
const ROOMS = 20;
/** Limits that no test reaches: the API asks Redis for every request. */
const LIMITS = { RATE_LIMIT_READS_PER_SECOND: '1000', RATE_LIMIT_WRITES_PER_SECOND: '1000' };
/** The interval of scans in production. */
const PRODUCTION = { SWEEP_INTERVAL_MS: '5000' };

interface Apps {
  api: TestApp;
  cleaner: TestApp;
  sender: TestApp;
}

let stack: WebhookStack;
let receiver: Receiver;
/** The apps that are used next. */
let apps: Apps;
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
});

async function spawnApps(interval: Record<string, string> = {}): Promise<Apps> {
  const [api, cleaner, sender] = await Promise.all([
    stack.spawnApi(LIMITS),
    stack.spawnWorker(interval),
    stack.spawnWebhookWorker(interval),
  ]);
  return { api, cleaner, sender };
}

const end = (api: TestApp, roomId: string, prefer = 'respond-async') =>
  stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer });

/** Resolves once jobs and notices arrive at all apps again. */
async function fastPathWorks({ api }: Apps): Promise<void> {
  await eventually(async () => (await end(api, await stack.newRoom(api), 'wait=5')).status === 204);
}

/** No fault of Redis costs a lease, so no delivery may be sent twice. Checks the requests from this index on. */
async function eachArrivesOnce(known: number): Promise<void> {
  await stack.allDelivered();
  receiver.check();
  const sent = receiver.requests.slice(known).map(({ deliveryId }) => deliveryId);
  expect(new Set(sent).size).toBe(sent.length);
}

test('work is attempted within 15 s of being due although Redis lost every job and the API died before it added one', async () => {
  const api = await stack.spawnApi(LIMITS);
  await stack.register(api, receiver);
  const rooms = await Promise.all(Array.from({ length: ROOMS }, () => stack.newRoom(api)));
  const last = rooms.at(-1)!;
  for (const roomId of rooms) {
    await stack.join(roomId, 2);
    if (roomId !== last) expect((await end(api, roomId)).status).toBe(202);
  }
  // The frozen Redis accepts no job: the request hangs after its commit, where the API is killed.
  stack.redis.freeze();
  const answer = end(api, last).then(
    ({ status }) => status,
    () => 'no answer',
  );
  await eventually(() => stack.operationOf(last), { intervalMs: 2 });
  api.kill('SIGKILL');
  // On a slow machine the API may have given up on Redis, and answered, before it dies.
  expect(['no answer', 202]).toContain(await answer);
  // It returns empty, also without the commands that the dead API wrote into its socket.
  stack.redis.kill('SIGKILL');
  await stack.redis.start();

  apps = await spawnApps(PRODUCTION);
  const readyAtMs = performance.now();
  const operations = await stack.allCompleted(rooms);
  await eventually(() => receiver.rooms('room.created').size === rooms.length);
  const lateMs = performance.now() - readyAtMs;
  measured({ 'ms from ready workers to the last attempt': lateMs });
  expect(lateMs).toBeLessThan(FOUND_WITHIN_MS);
  expect(new Set(operations.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  await eachArrivesOnce(0);
});

test('a retry whose job Redis lost comes within 15 s of being due', async () => {
  receiver.answer = ({ event }) => (receiver.counts().get(event.id) === 1 ? 503 : 200);
  const roomId = await stack.newRoom(apps.api);
  await eventually(() =>
    stack.database.prisma.webhookDelivery.findFirst({ where: { status: 'pending', runAttempts: 1 } }),
  );
  receiver.answer = () => 200;
  await stack.producer.redis.flushall();
  // Makes the retry due earlier than the worker expects.
  await stack.database.sql.$executeRaw`
    UPDATE webhook_deliveries SET due_at = now() - interval '1 second' WHERE status = 'pending'`;
  const dueAtMs = performance.now();
  await stack.allDelivered();
  expect(performance.now() - dueAtMs).toBeLessThan(FOUND_WITHIN_MS);
  expect(receiver.rooms('room.created').get(roomId)).toBe(2);
});

/** The longest of a few requests, in milliseconds. Ends the room. */
async function serves({ api }: Apps): Promise<number> {
  const created = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
  const roomId = String(created.body.id);
  const read = await stack.call(api, 'GET', `/v1/rooms/${roomId}`);
  const ended = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
  const answers: Answer[] = [created, read, ended];
  expect(answers.map(({ status }) => status)).toEqual([201, 200, 202]);
  await stack.completed(roomId);
  return Math.max(...answers.map(({ ms }) => ms));
}

/** Resolves once the health of the apps names the fault: degraded, and ready. */
async function nameTheFault({ api, cleaner, sender }: Apps, fault: string): Promise<void> {
  await eventually(async () => {
    for (const url of [api.url, cleaner.healthUrl, sender.healthUrl]) {
      const response = await fetch(`${url}/readyz`);
      const body: unknown = await response.json();
      expect({ status: response.status, body }).toMatchObject({
        status: 200,
        body: { status: 'degraded', checks: { redis: fault } },
      });
    }
    return true;
  });
}

test.each(REDIS_FAULTS)(
  'while Redis is %s, apps answer, work, start and say why they are degraded; afterwards no work is repeated',
  async (fault) => {
    await eventually(() => stack.producer.redis.status === 'ready' && stack.producer.health.trouble === null);
    const running = apps;
    const known = receiver.requests.length;
    const repair = await breakRedis(stack.redis, fault);
    try {
      await nameTheFault(running, fault);
      const rooms = await Promise.all(Array.from({ length: ROOMS }, () => stack.newRoom(running.api)));
      const beganAtMs = performance.now();
      await Promise.all(rooms.map((roomId) => end(running.api, roomId)));
      await stack.allCompleted(rooms);
      await stack.allDelivered();
      const tookMs = performance.now() - beganAtMs;
      const slowestMs = await serves(running);
      measured({ [`ms for ${ROOMS} ends and their deliveries`]: tookMs, 'slowest answer': slowestMs, fault });
      expect(tookMs).toBeLessThan(FOUND_WITHIN_MS);
      expect(slowestMs).toBeLessThan(RESPONSE_MS_MAX);
      apps = await spawnApps();
      await serves(apps);
    } finally {
      await repair();
    }
    await Promise.all([running, apps].map(fastPathWorks));
    await eachArrivesOnce(known);
    const attempts = attemptsIn(running.cleaner, apps.cleaner).map(({ operationId }) => operationId);
    expect(new Set(attempts).size).toBe(attempts.length);
    await Promise.all(Object.values(running).map((app: TestApp) => app.stop()));
    for (const app of Object.values(running) as TestApp[]) expect(app.output()).not.toContain('process failed');
  },
);

test('while Redis refuses subscriptions, no app ends, waits read rows, and the health says so', async () => {
  const { api } = apps;
  await eventually(() => stack.producer.health.probeAll().then(() => stack.producer.health.trouble === null));
  // Redis closes the connections with subscriptions, and refuses the new ones.
  await setUsers(stack.redis, 'resetchannels');
  const redisOf = async () => (await (await fetch(`${api.url}/readyz`)).json()).checks.redis as unknown;
  await api.waitForLog(({ message }) => message === 'redis subscription refused');
  expect(await redisOf()).toBe('refused');
  expect(await (await fetch(api.metricsUrl)).text()).toMatch(/^callplane_redis_unusable\{.*reason="refused".*\} 1$/m);
  for (let times = 0; times < 3; times += 1) {
    expect((await end(api, await stack.newRoom(api), 'wait=10')).status).toBe(204);
  }
  await setUsers(stack.redis, 'allchannels');
  await eventually(async () => (await redisOf()) === 'ok');
  await fastPathWorks(apps);
  for (const app of Object.values(apps) as TestApp[]) expect(app.output()).not.toContain('process failed');
});
