import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { writeEvents, type Prisma } from '@callplane/db';
import { eventually, type TestApp } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import {
  closedGate,
  deliveriesIn,
  startReceiver,
  startWebhookStack,
  type Receiver,
  type WebhookStack,
} from './webhooks.testkit.js';

/** Long enough that no worker of these tests loses a lease because the machine is slow. */
const LEASE_MS = 6000;

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

async function spawnWorker(): Promise<TestApp> {
  const worker = await stack.spawnWebhookWorker({ LEASE_MS: String(LEASE_MS) });
  workers.push(worker);
  return worker;
}

test('after a worker is killed with requests in flight, another delivers everything and repeats only those requests', async () => {
  const killed = await spawnWorker();
  // Proves the endpoint with a success: only then may it use all slots.
  await stack.newRoom(api);
  await stack.allDelivered();
  const gate = closedGate();
  receiver.answer = () => gate.opened.then(() => 200);
  const known = receiver.requests.length;
  const rooms = await Promise.all(Array.from({ length: 12 }, () => stack.newRoom(api)));
  // How many slots the endpoint gets depends on the machine: once a request hangs for a second, it gets no more.
  await eventually(() => receiver.requests.length > known);
  killed.kill('SIGKILL');
  await killed.exited;
  const killedAt = performance.now();
  // By the answer of another process, the receiver has read everything that the killed worker had sent.
  await stack.call(api, 'GET', '/v1/webhooks');
  const inFlight = receiver.requests.slice(known).map(({ event }) => event.id);
  gate.open();

  const heir = await spawnWorker();
  await stack.allDelivered();
  measured({ 'ms from the kill to the last delivery': performance.now() - killedAt });
  expect([...receiver.rooms('room.created').keys()]).toEqual(expect.arrayContaining(rooms));
  const twice = [...receiver.counts()].filter(([, count]) => count > 1);
  expect(new Map(twice)).toEqual(new Map(inFlight.map((id) => [id, 2])));
  // The killed worker had claimed up to four more deliveries than the four in flight: these also waited for the lease.
  const lost = await stack.leasesLost();
  expect([...lost.keys()]).toEqual(expect.arrayContaining(inFlight));
  expect(lost.size).toBeLessThanOrEqual(4 + 4);
  expect([...lost.values()].every((count) => count === 1)).toBe(true);
  // The log lines arrive through a pipe, later than the rows.
  await eventually(() => deliveriesIn(heir).length >= rooms.length);
  expect(deliveriesIn(heir)).toHaveLength(rooms.length);
});

test('a worker frozen beyond its lease writes nothing over its successor when it thaws', async () => {
  const frozen = await spawnWorker();
  const gate = closedGate();
  const known = receiver.requests.length;
  // The frozen worker's response, 400, would end the delivery as rejected.
  receiver.answer = () => (receiver.requests.length === known + 1 ? gate.opened.then(() => 400) : 200);
  await stack.newRoom(api);
  await eventually(() => receiver.requests.length === known + 1);
  const { deliveryId, event } = receiver.requests[known]!;
  frozen.freeze();

  await spawnWorker();
  await stack.allDelivered();
  const read = async () => ({
    row: await stack.database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id: deliveryId } }),
    attempts: await stack.database.prisma.webhookAttempt.findMany({ where: { deliveryId }, orderBy: { id: 'asc' } }),
    endpoints: await stack.database.prisma.webhookEndpoint.findMany(),
  });
  const settled = await read();
  expect(settled.row).toMatchObject({ status: 'succeeded', runAttempts: 2, leaseToken: null });
  expect(settled.attempts).toMatchObject([{ errorCode: 'LEASE_EXPIRED' }, { outcome: 'success', statusCode: 200 }]);

  gate.open();
  frozen.thaw();
  const late = await frozen.waitForLog((line) => line['deliveryId'] === deliveryId && line['status'] === 'lease_lost');
  expect(late).toMatchObject({ attempt: 1 });
  // On a slow machine it may freeze for longer than the delivery deadline and time out; writing that result would be as
  // wrong.
  expect([400, null]).toContain(late['statusCode']);
  expect(await read()).toEqual(settled);
  expect(receiver.counts().get(event.id)).toBe(2);
  // The thawed worker keeps delivering.
  const before = deliveriesIn(frozen).length;
  await eventually(async () => {
    await stack.newRoom(api);
    await stack.allDelivered();
    return deliveriesIn(frozen).length > before;
  });
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
  const killed = await spawnWorker();
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
  await spawnWorker();
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
    const write = (tx: Prisma.TransactionClient) => writeEvents(tx, events, { only: String(endpoint.id) });
    const { deliveries } = await stack.database.transaction(write);
    await stack.producer.wakeDeliveries(deliveries);
  };
  const { prisma } = stack.database;
  const finished = () =>
    prisma.webhookDelivery.count({ where: { endpointId: endpoint.id, completedAt: { not: null } } });

  let [first, second] = await Promise.all([spawnWorker(), spawnWorker()]);
  for (const round of [1, 2, 3]) {
    answeredAtOnce = ofOrdered().length + 5;
    kill = closedGate();
    // New events for each kill: on a busy machine the other worker may deliver all earlier ones while one starts.
    for (const room of rooms) await emit(room, 4);
    await eventually(() => ofOrdered().length > answeredAtOnce);
    (round % 2 === 1 ? first : second).kill('SIGKILL');
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
    if (round % 2 === 1) first = await spawnWorker();
    else second = await spawnWorker();
  }
  await eventually(async () => (await finished()) === 12 * rooms.length, { timeoutMs: 120_000 });

  expect(overlaps).toEqual([]);
  for (const room of rooms) {
    const requests = ofOrdered().filter(({ event }) => event.data['room'] === room);
    const firstRuns = requests.filter(({ replayCount }) => replayCount === 0).map(({ event }) => event.sequence!);
    // Attempts repeat an event, but never after a later one.
    expect(firstRuns).toEqual([...firstRuns].sort((a, b) => a - b));
    expect([...new Set(firstRuns)]).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  }
  expect(unavailable.size).toBe(3);
  expect(ofOrdered().filter(({ replayCount }) => replayCount > 0).length).toBeGreaterThanOrEqual(3);
});
