import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { acceptRoomEnd, writeEvents, type TypedSql } from '@callplane/db';
import { eventually, type TestApp } from '@callplane/testing';
import { attemptsIn, measured } from './faults.testkit.js';
import {
  closedGate,
  deliveriesIn,
  startReceiver,
  startWebhookStack,
  type Receiver,
  type WebhookStack,
} from './webhooks.testkit.js';

/** Long enough that no worker of these tests loses a lease because the machine is slow. */
const LEASE_MS = '6000';

let stack: WebhookStack;
let api: TestApp;
let receiver: Receiver;
const workers: TestApp[] = [];
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  api = await stack.spawnApi();
  await stack.register(api, receiver);
});
afterEach(async () => {
  receiver.answer = () => 200;
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  receiver.check();
});

async function spawnSender(): Promise<TestApp> {
  const worker = await stack.spawnWebhookWorker({ LEASE_MS });
  workers.push(worker);
  return worker;
}

async function spawnCleaner(): Promise<TestApp> {
  const worker = await stack.spawnWorker({ LEASE_MS });
  workers.push(worker);
  return worker;
}

/** A room with a participant and an accepted end, which no worker has been woken for. */
async function endingRoom() {
  const [roomId] = await stack.seedRooms(1);
  const accepted = await acceptRoomEnd(stack.database, stack.tenant, roomId!, new Date());
  return { roomId: roomId!, operationId: accepted!.operation.id, wake: accepted!.wake! };
}

test('workers that are frozen beyond their leases write nothing over their successors, and go on working when they thaw', async () => {
  const [cleaner, sender] = await Promise.all([spawnCleaner(), spawnSender()]);
  const gate = closedGate();
  const known = receiver.requests.length;
  // The response to the frozen worker, 400, would end the delivery as rejected.
  receiver.answer = () => (receiver.requests.length === known + 1 ? gate.opened.then(() => 400) : 200);
  await stack.newRoom(api);
  await eventually(() => receiver.requests.length === known + 1);
  const { deliveryId, event } = receiver.requests[known]!;
  sender.freeze();
  const { roomId, operationId, wake } = await endingRoom();
  // The claim of the cleanup worker waits for this lock and succeeds after the freeze: the worker holds the lease and
  // has done nothing yet.
  await stack.database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM runtime_operations WHERE id = ${operationId} FOR UPDATE`;
    await stack.producer.wakeOperations([wake]);
    await eventually(async () => {
      const [row] = await stack.database.prisma.$queryRaw<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.count === 1;
    });
    cleaner.freeze();
  });
  await eventually(async () => (await stack.operationOf(roomId))?.leaseToken != null);

  await Promise.all([spawnCleaner(), spawnSender()]);
  await stack.completed(roomId);
  await stack.allDelivered();
  const { prisma } = stack.database;
  const read = async () => ({
    operation: await stack.operationOf(roomId),
    participants: await prisma.participant.findMany({ where: { roomId } }),
    delivery: await prisma.webhookDelivery.findUniqueOrThrow({ where: { id: deliveryId } }),
    attempts: await prisma.webhookAttempt.findMany({ where: { deliveryId }, orderBy: { id: 'asc' } }),
  });
  const settled = await read();
  expect(settled).toMatchObject({
    operation: { attempts: 2, leaseToken: null },
    delivery: { status: 'succeeded', runAttempts: 2, leaseToken: null },
    attempts: [{ errorCode: 'LEASE_EXPIRED' }, { outcome: 'success', statusCode: 200 }],
  });

  gate.open();
  for (const worker of [cleaner, sender]) worker.thaw();
  await cleaner.waitForLog((line) => line['operationId'] === operationId && line['outcome'] === 'lease_lost');
  const late = await sender.waitForLog((line) => line['deliveryId'] === deliveryId && line['status'] === 'lease_lost');
  expect(late).toMatchObject({ attempt: 1 });
  // On a slow machine it may freeze for longer than the delivery deadline and time out; writing that result would be as
  // wrong.
  expect([400, null]).toContain(late['statusCode']);
  expect(await read()).toEqual(settled);
  expect(receiver.counts().get(event.id)).toBe(2);
  await eventually(async () => {
    const next = await stack.newRoom(api);
    await stack.call(api, 'DELETE', `/v1/rooms/${next}`, { prefer: 'respond-async' });
    await stack.completed(next);
    await stack.allDelivered();
    return deliveriesIn(sender).length > 1 && attemptsIn(cleaner).length > 1;
  });
});

test('operations and deliveries that two workers are woken for many times are each attempted once', async () => {
  const cleaners = await Promise.all([spawnCleaner(), spawnCleaner()]);
  const senders = await Promise.all([spawnSender(), spawnSender()]);
  const known = receiver.requests.length;
  const ending = await Promise.all(Array.from({ length: 12 }, endingRoom));
  await Promise.all(Array.from({ length: 40 }, () => stack.newRoom(api)));
  const rows = await stack.database.prisma.webhookDelivery.findMany({
    orderBy: { id: 'desc' },
    take: 40,
    select: { id: true, endpointId: true, environmentId: true },
  });
  for (let n = 0; n < 5; n += 1) {
    await stack.producer.wakeOperations(ending.map(({ wake }) => ({ ...wake, runAttempts: n })));
    for (const row of rows) await stack.producer.wakeDeliveries([{ ...row, slotMs: 64, ticket: n }]);
  }
  const operations = await stack.allCompleted(ending.map(({ roomId }) => roomId));
  await stack.allDelivered();
  // Until every job is processed. (A job of an earlier test's worker may remain.)
  await eventually(async () => {
    const left = await stack.producer.redis.keys('callplane:room-end:op_*');
    return !ending.some(({ operationId }) => left.some((key) => key.includes(operationId)));
  });
  await eventually(
    async () => (await stack.producer.waitingCount(['webhook-delivery', 'webhook-delivery-slow'])) === 0,
  );
  expect(new Set(operations.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  const attempted = attemptsIn(...cleaners).map((line) => line['operationId']);
  expect(attempted.sort()).toEqual(ending.map(({ operationId }) => operationId).sort());
  const sent = receiver.requests.slice(known).map(({ deliveryId }) => deliveryId);
  expect(new Set(sent).size).toBe(sent.length);
  // The rooms, and for each end the participant's leave and the end.
  expect(sent).toHaveLength(40 + 2 * 12);
  const shares = [...cleaners, ...senders].map((worker) => attemptsIn(worker).length + deliveriesIn(worker).length);
  measured({ 'attempts of each worker': shares.join(' ') });
});

test('after a worker is killed during a recovery, another continues it, and every delivery arrives', async () => {
  const { prisma } = stack.database;
  const [{ id: endpointId } = { id: '' }] = (await stack.call(api, 'GET', '/v1/webhooks')).body.data as {
    id: string;
  }[];
  const since = new Date();
  const made = await stack.database.transaction(async (tx) => {
    const event = { type: 'webhook.test' as const, tenant: stack.tenant, roomId: null, participantId: null, data: {} };
    const events = Array.from({ length: 130 }, () => ({ ...event, createdAt: since }));
    const { deliveries } = await writeEvents(tx, events, { only: endpointId });
    await tx.$executeRaw`
      UPDATE webhook_deliveries SET run_attempts = 3, due_at = now() + interval '1 hour' WHERE status = 'pending'`;
    return deliveries;
  });
  const gate = closedGate();
  receiver.answer = () => gate.opened.then(() => 200);
  const killed = await spawnSender();
  const path = `/v1/webhooks/${endpointId}/recoveries`;
  const { body } = await stack.call(api, 'POST', path, { body: { since: since.toISOString() } });
  const recovery = async () => (await stack.call(api, 'GET', `${path}/${String(body.id)}`)).body;
  // Its first step; the second one is a second later.
  await eventually(async () => Number((await recovery()).woken) >= 100);
  killed.kill('SIGKILL');
  await killed.exited;
  gate.open();
  receiver.answer = () => 200;
  const killedAt = performance.now();
  await spawnSender();
  await stack.allDelivered();
  measured({ 'ms from the kill during a recovery to the last delivery': performance.now() - killedAt });
  const ended = await eventually(async () => {
    const now = await recovery();
    return now.status === 'completed' && now;
  });
  // A delivery that was in flight at its turn and has succeeded since is not counted.
  expect(Number(ended.woken)).toBeGreaterThan(100);
  expect(ended).toMatchObject({ matched: ended.woken, replayed: 0, skipped: 0 });
  const arrived = new Set(receiver.requests.map(({ deliveryId }) => deliveryId));
  expect(made.filter(({ id }) => !arrived.has(id))).toEqual([]);
  expect(await prisma.webhookDelivery.count({ where: { createdAt: since, status: 'succeeded' } })).toBe(made.length);
});

test('rooms stay in order at an endpoint with the ordering "room", one event at a time, while workers are killed', async () => {
  const { body: endpoint } = await stack.call(api, 'POST', '/v1/webhooks', {
    body: { url: `${receiver.url}/ordered`, events: ['webhook.test'], ordering: 'room' },
  });
  receiver.learn('/ordered', 1, String(endpoint.signingSecret));
  const rooms = await stack.seedRooms(6);
  const ofOrdered = () => receiver.requests.filter(({ path }) => path === '/ordered');
  const inFlight = new Map<string, number>();
  const overlaps: string[] = [];
  /** Answers wait for the kill once this many requests have come, so that a worker always dies with some in flight. */
  let answeredAtOnce = 0;
  let kill = closedGate();
  const unavailable = new Set<string>();
  receiver.answer = async ({ path, event, replayCount }) => {
    const room = String(event.data['room']);
    if (path !== '/ordered') return 200;
    if ((inFlight.get(room) ?? 0) > 0) overlaps.push(event.id);
    inFlight.set(room, (inFlight.get(room) ?? 0) + 1);
    if (ofOrdered().length > answeredAtOnce) await kill.opened;
    else await new Promise((resolve) => setTimeout(resolve, 20));
    inFlight.set(room, inFlight.get(room)! - 1);
    // One event of every second room fails once, so the room waits for its retry. Every seventh one fails for good.
    if (event.sequence === 5 && rooms.indexOf(room) % 2 === 0 && !unavailable.has(event.id) && replayCount === 0) {
      unavailable.add(event.id);
      return 503;
    }
    return event.sequence! % 7 === 0 ? 410 : 200;
  };
  const emit = async (roomId: string, count: number): Promise<void> => {
    const data = { room: roomId };
    const event = { type: 'webhook.test' as const, tenant: stack.tenant, roomId, participantId: null, data };
    const events = Array.from({ length: count }, () => ({ ...event, createdAt: new Date() }));
    const write = (tx: TypedSql) => writeEvents(tx, events, { only: String(endpoint.id) });
    const { deliveries } = await stack.database.transaction(write);
    await stack.producer.wakeDeliveries(deliveries);
  };
  const { prisma } = stack.database;
  const finished = () =>
    prisma.webhookDelivery.count({ where: { endpointId: endpoint.id, completedAt: { not: null } } });

  let [first, second] = await Promise.all([spawnSender(), spawnSender()]);
  for (const round of [1, 2]) {
    answeredAtOnce = ofOrdered().length + 5;
    kill = closedGate();
    // New events for each kill: on a busy machine the other worker may deliver all earlier ones while one starts.
    for (const room of rooms) await emit(room, 5);
    await eventually(() => ofOrdered().length > answeredAtOnce);
    (round === 1 ? first : second).kill('SIGKILL');
    kill.open();
    // A replay of a finished event goes beside the first runs of its room, but not at the same time as one of them.
    const done = await eventually(() =>
      prisma.webhookDelivery.findFirst({
        where: { endpointId: endpoint.id, completedAt: { not: null }, replayCount: 0 },
        orderBy: { completedAt: 'asc' },
      }),
    );
    const replayed = await stack.call(api, 'POST', `/v1/webhooks/${endpoint.id}/deliveries/${done.id}/replay`, {
      body: { expectedReplayCount: 0 },
    });
    expect(replayed.status).toBe(202);
    if (round === 1) first = await spawnSender();
    else second = await spawnSender();
  }
  await eventually(async () => (await finished()) === 10 * rooms.length, { timeoutMs: 120_000 });

  expect(overlaps).toEqual([]);
  for (const room of rooms) {
    const requests = ofOrdered().filter(({ event }) => event.data['room'] === room);
    const firstRuns = requests.filter(({ replayCount }) => replayCount === 0).map(({ event }) => event.sequence!);
    // Attempts repeat an event, but never after a later one.
    expect(firstRuns).toEqual([...firstRuns].sort((a, b) => a - b));
    expect([...new Set(firstRuns)]).toEqual(Array.from({ length: 10 }, (_, index) => index + 1));
  }
  expect(unavailable.size).toBe(3);
  expect(ofOrdered().filter(({ replayCount }) => replayCount > 0).length).toBeGreaterThanOrEqual(2);
});

test('an operation whose worker is killed late in its lease goes on within 15 s of the end of the lease', async () => {
  const killed = await spawnCleaner();
  const { roomId, wake } = await endingRoom();
  const claimed = await stack.holding([roomId], async () => {
    await stack.producer.wakeOperations([wake]);
    const operation = await eventually(async () => {
      const row = await stack.operationOf(roomId);
      return row?.leaseToken == null ? null : row;
    });
    await eventually(() => Date.now() > operation.leaseExpiresAt!.getTime() - 1000);
    killed.kill('SIGKILL');
    await killed.exited;
    return operation;
  });
  // The job of the killed worker stays active in Redis for longer than the lease.
  const worker = await stack.spawnWorker({ LEASE_MS, SWEEP_INTERVAL_MS: '5000' });
  workers.push(worker);
  const { attempts, completedAt } = await stack.completed(roomId);
  const lateMs = completedAt!.getTime() - claimed.leaseExpiresAt!.getTime();
  measured({ 'ms from the end of the lease to completion': lateMs });
  expect(attempts).toBe(2);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(15_000);
});
