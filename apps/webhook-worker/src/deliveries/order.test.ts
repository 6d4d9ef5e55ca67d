import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import {
  advanceLine,
  claimGated,
  findDelivery,
  freeParkedDeliveries,
  releaseDelivery,
  retryDelivery,
  settleDeliveries,
  updateWebhookEndpoint,
  type ClaimedDelivery,
  type DeliveryRow,
  type GatedClaim,
} from '@callplane/db';
import { eventually, stopAtEnd } from '@callplane/testing';
import { Webhook } from 'standardwebhooks';
import { startReceiver, type ReceivedRequest } from '../receivers.testkit.js';
import { sweepRecoveries } from '../sweep/recoveries.js';
import { sweepDeliveries } from '../sweep/sweep.js';
import { NOON, startTestWorker, TEST_SECRET, type TestWorker } from '../worker.testkit.js';
import { Doorbells } from './doorbells.js';
import { startByMs } from './held.js';

const NOWHERE = 'http://127.0.0.1:1/';
const PARKED_AT = '9999-12-31T00:00:00.000Z';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() =>
  worker.sql(
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_gates, webhook_deliveries, webhook_attempts, events, ' +
      'webhook_recoveries',
  ),
);

type Limits = Partial<Record<'ordering', string> & Record<'maxPerSecond' | 'maxConcurrent', number>>;

async function gatedEndpoint(limits: Limits, url = NOWHERE): Promise<string> {
  const id = await worker.newEndpoint(url, { proven: true });
  await worker.deps.database.prisma.webhookEndpoint.update({ where: { id }, data: { ...limits, slotMs: 64 } });
  return id;
}

/** Claims until a claim of the endpoint goes through its gate and finds nothing new to park. */
async function claim(endpointId: string, count = 8, isRetry = false): Promise<GatedClaim> {
  const { database, leaseMs } = worker.deps;
  const claimed: ClaimedDelivery[] = [];
  for (;;) {
    const request = { endpointId, isRetry, count: count - claimed.length, since: null };
    const result = await claimGated(database.sql, request, leaseMs);
    claimed.push(...result.claimed);
    if (claimed.length === count || !result.isMore || result.pause !== null) return { ...result, claimed };
  }
}

/** Settles a claimed delivery as a worker does, and makes the next one of its line due. */
async function settle(delivery: ClaimedDelivery, status: 'succeeded' | 'pending', delayMs = 0): Promise<void> {
  const attempt = {
    durationMs: 1,
    outcome: status === 'succeeded' ? ('success' as const) : ('response' as const),
    errorCode: null,
    statusCode: status === 'succeeded' ? 200 : 503,
    address: null,
    timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
    responseBody: null,
    responseTruncated: false,
    exchange: null,
  };
  const after = status === 'succeeded' ? { status } : { status, delayMs };
  const { sql } = worker.deps.database;
  await settleDeliveries(sql, [{ claim: delivery, attempt, after, proves: true, slotMs: 64 }]);
  const { endpointId, lineRoomId: roomId, replayCount } = delivery;
  if (status === 'succeeded' && roomId !== null)
    await advanceLine(sql, { endpointId, roomId, isReplay: replayCount > 0 });
}

const read = async (endpointId: string, deliveryId: string): Promise<DeliveryRow> =>
  (await findDelivery(worker.deps.database.sql, worker.tenant, endpointId, deliveryId))!;
const ids = ({ claimed }: { claimed: { id: string }[] }) => claimed.map(({ id }) => id);
const replay = (id: string) =>
  worker.sql(
    `UPDATE webhook_deliveries SET status = 'pending', failure_reason = NULL, completed_at = NULL, run_attempts = 0,
       replay_count = replay_count + 1, due_at = now() WHERE id = '${id}'`,
  );

describe('an endpoint with the ordering "room"', () => {
  test('gets the first open event of each room, and the next one when that has finished', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [a1, a2, a3] = await worker.emitToRoom(endpointId, newId('room'), 3);
    const [b1] = await worker.emitToRoom(endpointId, newId('room'), 2);
    const [none] = await worker.emit(endpointId);
    const first = await claim(endpointId);
    expect(new Set(ids(first))).toEqual(new Set([a1, b1, none!.id]));
    expect(first).toMatchObject({ isGated: true, isMore: false, pause: null });
    expect(ids(await claim(endpointId))).toEqual([]);
    expect(await worker.row(a3!)).toMatchObject({ status: 'pending', dueAt: new Date(PARKED_AT) });

    const head = first.claimed.find(({ id }) => id === a1)!;
    // An attempt that failed keeps the others waiting until its retry has finished.
    await settle(head, 'pending', 0);
    expect(ids(await claim(endpointId))).toEqual([]);
    expect(await read(endpointId, a3!)).toMatchObject({ blockedBy: a1, nextAttemptAt: null });
    const retry = await claim(endpointId, 8, true);
    expect(ids(retry)).toEqual([a1]);
    await settle(retry.claimed[0]!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual([a2]);
  });

  test('shows the delivery that another one waits for before any worker has looked at it', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    expect(await read(endpointId, first!)).toMatchObject({ blockedBy: null, nextAttemptAt: expect.any(Date) });
    for (const id of [second, third])
      expect(await read(endpointId, id!)).toMatchObject({ blockedBy: first, nextAttemptAt: null });
    await worker.deps.database.prisma.webhookEndpoint.update({ where: { id: endpointId }, data: { ordering: 'none' } });
    expect(await read(endpointId, third!)).toMatchObject({ blockedBy: null, nextAttemptAt: expect.any(Date) });
  });

  test('gets a replay beside first runs that wait, but never at the same time as another event of the room', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    await settle((await claim(endpointId)).claimed[0]!, 'succeeded');
    await replay(first!);
    // Either the replay or the second event: both are first of their lines.
    const [one, ...others] = (await claim(endpointId)).claimed;
    expect(others).toEqual([]);
    expect(await claim(endpointId)).toMatchObject({ claimed: [], isMore: true, pause: { endsWithAttempt: true } });
    await settle(one!, 'pending', 3_600_000);
    const [other] = (await claim(endpointId)).claimed;
    expect(new Set([one!.id, other!.id])).toEqual(new Set([first, second]));
    // A replay that waits for its retry blocks no first run, and the other way round.
    await settle(other!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual(one!.id === first ? [third] : []);
  });

  test('gets replays of one room in order', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first, second] = await worker.emitToRoom(endpointId, newId('room'), 2);
    for (const id of [first, second]) {
      const { claimed } = await claim(endpointId);
      expect(ids({ claimed })).toEqual([id]);
      await settle(claimed[0]!, 'succeeded');
    }
    await replay(second!);
    await replay(first!);
    const { claimed } = await claim(endpointId);
    expect(ids({ claimed })).toEqual([first]);
    expect(await read(endpointId, second!)).toMatchObject({ blockedBy: first });
    await settle(claimed[0]!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual([second]);
  });

  test('keeps a delivery blocked whose next attempt was brought forward, alone or by a recovery', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    const { claimed } = await claim(endpointId);
    await claim(endpointId);
    await settle(claimed[0]!, 'pending', 3_600_000);
    const retried = await worker.deps.database.transaction((tx) =>
      retryDelivery(tx, worker.tenant, endpointId, second!),
    );
    expect(retried).toMatchObject({ ok: true, delivery: { status: 'pending', blockedBy: first, nextAttemptAt: null } });
    expect(ids(await claim(endpointId))).toEqual([]);
    expect(await read(endpointId, second!)).toMatchObject({ status: 'pending', blockedBy: first });

    await worker.deps.database.prisma.webhookRecovery.create({
      data: {
        id: newId('recovery'),
        environmentId: worker.tenant.environmentId,
        endpointId,
        since: new Date(0),
        until: new Date('2100-01-01'),
        dryRun: false,
        includePending: true,
        status: 'pending',
        createdAt: NOON,
      },
    });
    await sweepRecoveries(worker.deps, new AbortController().signal, 60_000);
    const retry = await claim(endpointId, 8, true);
    expect([ids(retry), ids(await claim(endpointId))]).toEqual([[first], []]);
    expect(await read(endpointId, third!)).toMatchObject({ blockedBy: first });
    await settle(retry.claimed[0]!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual([second]);
  });

  test('gets a released delivery again before the next one', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first] = await worker.emitToRoom(endpointId, newId('room'), 2);
    const { claimed } = await claim(endpointId);
    await releaseDelivery(worker.deps.database.sql, claimed[0]!, 0);
    expect(ids(await claim(endpointId))).toEqual([first]);
  });
});

describe('the sweep', () => {
  test('frees the next delivery after a run expired or the worker died between settling and freeing', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    await settle((await claim(endpointId)).claimed[0]!, 'pending', 3_600_000);
    await worker.sql(`UPDATE webhook_deliveries SET run_started_at = now() - interval '8 days' WHERE id = '${first}'`);
    await sweepDeliveries(worker.deps);
    const { claimed } = await claim(endpointId);
    expect(ids({ claimed })).toEqual([second]);
    await worker.sql(`UPDATE webhook_deliveries SET status = 'succeeded', lease_token = NULL, lease_expires_at = NULL,
      completed_at = now() WHERE id = '${second}'`);
    expect(ids(await claim(endpointId))).toEqual([]);
    await sweepDeliveries(worker.deps);
    expect(ids(await claim(endpointId))).toEqual([third]);
    expect(await worker.metrics()).toMatch(/callplane_webhook_swept_total\{[^}]*what="freed"[^}]*\} [2-9]/);
  });

  test('frees all parked deliveries of an endpoint without an order, in any number of steps', async () => {
    const endpointId = await gatedEndpoint({ ordering: 'room' });
    for (let n = 0; n < 3; n += 1) await worker.emitToRoom(endpointId, newId('room'), 3);
    expect((await claim(endpointId)).claimed).toHaveLength(3);
    const { prisma, sql } = worker.deps.database;
    const parked = () => prisma.webhookDelivery.count({ where: { dueAt: new Date(PARKED_AT) } });
    expect(await parked()).toBe(6);
    await freeParkedDeliveries(sql, null, 100);
    expect(await parked()).toBe(6);
    const off = (tx: Parameters<typeof updateWebhookEndpoint>[0]) =>
      updateWebhookEndpoint(tx, worker.tenant, endpointId, { ordering: 'none' }, NOON);
    await worker.deps.database.transaction(off);
    let from: Awaited<ReturnType<typeof freeParkedDeliveries>>['next'] = null;
    let steps = 0;
    do {
      ({ next: from } = await freeParkedDeliveries(sql, from, 2));
      steps += 1;
    } while ((await parked()) > 0);
    expect(steps).toBeGreaterThan(1);
    expect((await worker.claim(endpointId, 8)).length).toBe(6);
  });
});

test('switching the order on applies to deliveries that are pending already', async () => {
  const endpointId = await worker.newEndpoint(NOWHERE, { proven: true });
  const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
  // In flight without a gate while the order is switched on.
  const [inFlight] = await worker.claim(endpointId, 1);
  expect(first).toBe(inFlight!.id);
  const on = (tx: Parameters<typeof updateWebhookEndpoint>[0]) =>
    updateWebhookEndpoint(tx, worker.tenant, endpointId, { ordering: 'room' }, NOON);
  await worker.deps.database.transaction(on);
  expect(await worker.claim(endpointId, 8)).toEqual([]);
  expect(ids(await claim(endpointId))).toEqual([]);
  for (const id of [second, third]) expect(await read(endpointId, id!)).toMatchObject({ blockedBy: first });
  await settle({ ...inFlight!, lineRoomId: null }, 'succeeded');
  await sweepDeliveries(worker.deps);
  expect(ids(await claim(endpointId))).toEqual([second]);
});

test('concurrent claims never put two deliveries of a room in flight, nor more than the maximum', async () => {
  const endpointId = await gatedEndpoint({ ordering: 'room', maxConcurrent: 3 });
  const rooms = Array.from({ length: 5 }, () => newId('room'));
  for (const room of rooms) await worker.emitToRoom(endpointId, room, 12);
  const { prisma, sql } = worker.deps.database;
  const order: { roomId: string | null; sequence: number | null; replayCount: number }[] = [];
  let open = 5 * 12;
  let mostInFlight = 0;
  const work = async (n: number): Promise<void> => {
    for (let turn = n; open > 0; turn += 1) {
      const request = { endpointId, isRetry: false, count: 1 + (turn % 4), since: null };
      const { claimed } = await claimGated(sql, request, worker.deps.leaseMs);
      for (const delivery of claimed) {
        const inFlight = await prisma.webhookDelivery.findMany({ where: { endpointId, status: 'delivering' } });
        const inRooms = new Set(inFlight.map(({ roomId }) => roomId));
        expect(inRooms.size).toBe(inFlight.length);
        mostInFlight = Math.max(mostInFlight, inFlight.length);
        expect(inFlight.length).toBeLessThanOrEqual(3);
        const { roomId, sequence, replayCount } = await worker.row(delivery.id);
        order.push({ roomId, sequence, replayCount });
        await settle(delivery, 'succeeded');
        open -= 1;
        // Every fourth event is replayed at once, beside the first runs of its room.
        if (replayCount === 0 && sequence! % 4 === 0) {
          open += 1;
          await replay(delivery.id);
        }
      }
      if (claimed.length === 0) await freeParkedDeliveries(sql, null, 100);
    }
  };
  await Promise.all(Array.from({ length: 6 }, (_, n) => work(n)));
  expect(mostInFlight).toBeGreaterThan(1);
  for (const room of rooms) {
    const inRoom = order.filter(({ roomId }) => roomId === room);
    const sequences = (isReplay: boolean) =>
      inRoom.filter(({ replayCount }) => replayCount > 0 === isReplay).map(({ sequence }) => sequence);
    expect(sequences(false)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    expect(sequences(true)).toEqual([4, 8, 12]);
  }
});

test('concurrent claims exceed the maximum rate by no more than its burst', async () => {
  const endpointId = await gatedEndpoint({ maxPerSecond: 100 });
  await worker.emit(endpointId, 200);
  const { sql, prisma } = worker.deps.database;
  const nowMs = async () => {
    const [row] = await prisma.$queryRaw<[{ ms: number }]>`
      SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
    return row.ms;
  };
  const startedAtMs = await nowMs();
  const times: number[] = [];
  const lateMs: number[] = [];
  let pauses = 0;
  const work = async (): Promise<void> => {
    while (times.length < 60) {
      const { claimed, pause } = await claimGated(sql, { endpointId, isRetry: false, count: 8, since: null }, 60_000);
      times.push(...claimed.map(({ startedAt }) => startedAt.getTime()));
      lateMs.push(...claimed.map(({ startWithinMs }) => 50 - startWithinMs!));
      if (pause !== null && !pause.endsWithAttempt) pauses += 1;
    }
  };
  await Promise.all([work(), work(), work()]);
  times.sort((a, b) => a - b);
  expect(pauses).toBeGreaterThan(0);
  // GCRA: attempt n begins no earlier than n intervals after the start, less the burst. A millisecond for rounding.
  const early = times.map((ms, index) => ms - startedAtMs - (index * 10 - 40)).filter((slack) => slack < -1);
  expect(early).toEqual([]);
  // A claim takes tokens of the last 40 ms, and each attempt has to begin within 50 ms of its token.
  expect(lateMs.filter((ms) => ms < -0.01 || ms > 40.01)).toEqual([]);
});

test('a delivery that waited too long for its slot is given back under a maximum rate', async () => {
  const endpointId = await gatedEndpoint({ maxPerSecond: 1 });
  const [delivery] = await worker.emit(endpointId);
  const { claimed, isPaced } = await claim(endpointId, 1);
  expect([isPaced, claimed.map(({ id }) => id)]).toEqual([true, [delivery!.id]]);
  const within = claimed[0]!.startWithinMs!;
  const times = { askedAtMs: 1000, answeredAtMs: 3000 };
  expect([
    startByMs(claimed[0]!, times, 60_000),
    startByMs(claimed[0]!, times, 1),
    startByMs({}, times, 60_000),
  ]).toEqual([3000 + within, 1001, 61_000]);
});

test('a claim behind thousands of blocked and finished deliveries reads only index entries that it needs', async () => {
  const endpointId = await gatedEndpoint({ ordering: 'room', maxPerSecond: 1000 });
  const room = newId('room');
  await worker.emitToRoom(endpointId, room, 1);
  const rows = (from: number, to: number, status: string) => `
    WITH event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
      SELECT callplane_typeid('evt'), '${worker.tenant.environmentId}', 'webhook.test', '${room}', n, '{}', now()
      FROM generate_series(${from}, ${to}) n RETURNING id, sequence
    )
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
      completed_at, due_at, created_at)
    SELECT callplane_typeid('dlv'), '${worker.tenant.environmentId}', '${endpointId}', id, 'webhook.test', '${room}',
      sequence, '${status}', ${status === 'pending' ? 'NULL' : 'now()'},
      ${status === 'pending' ? `'${PARKED_AT}'` : 'now()'}, now() FROM event`;
  await worker.sql(rows(2, 3000, 'succeeded'));
  await worker.sql(rows(3001, 6000, 'pending'));
  const [due] = await worker.emitToRoom(endpointId, newId('room'), 1);
  await worker.sql('VACUUM ANALYZE webhook_deliveries');
  await claimGated(worker.deps.database.sql, { endpointId, isRetry: false, count: 1, since: null }, 60_000);

  const plans: string[] = [];
  const explained = {
    $queryRaw: async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const { prisma } = worker.deps.database;
      const text = strings.map((each, index) => (index === 0 ? `EXPLAIN (ANALYZE, BUFFERS) ${each}` : each));
      const explain = Object.assign(text, { raw: text }) as unknown as TemplateStringsArray;
      const plan = await prisma.$queryRaw<{ 'QUERY PLAN': string }[]>(explain, ...values);
      plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
      return [];
    },
  };
  const sql = explained as unknown as Parameters<typeof claimGated>[0];
  await claimGated(sql, { endpointId, isRetry: false, count: 4, since: null }, 60_000);
  expect(due).toBeDefined();
  const [plan = ''] = plans;
  const onDeliveries = plan.split('\n').filter((line) => line.includes('webhook_deliveries'));
  expect(onDeliveries.filter((line) => line.includes('Seq Scan'))).toEqual([]);
  const read = [...plan.matchAll(/rows=([\d.]+) loops/g)].map(([, count]) => Number(count));
  expect(read.length).toBeGreaterThan(10);
  expect(Math.max(...read)).toBeLessThanOrEqual(8);
  expect(plan).not.toMatch(/Rows Removed by Filter: \d{3}/);
});

test('two workers deliver rooms in order through failures, each room one at a time', async () => {
  const inFlight = new Map<string, number>();
  const arrived = new Map<string, number[]>();
  let overlaps = 0;
  let failures = 0;
  const receiver = await startReceiver((_request, response, { body }: ReceivedRequest) => {
    const { data, sequence } = JSON.parse(body.toString()) as { data: { room: string }; sequence: number };
    const { room } = data;
    inFlight.set(room, (inFlight.get(room) ?? 0) + 1);
    if (inFlight.get(room)! > 1) overlaps += 1;
    setTimeout(() => {
      inFlight.set(room, inFlight.get(room)! - 1);
      // Fails for good, so that the test need not wait for a retry.
      const fails = sequence % 3 === 0;
      if (fails) failures += 1;
      arrived.set(room, [...(arrived.get(room) ?? []), sequence]);
      response.writeHead(fails ? 410 : 200).end();
    }, 2);
  });
  const endpointId = await gatedEndpoint({ ordering: 'room' }, receiver.url);
  const rooms = Array.from({ length: 4 }, () => newId('room'));
  for (const room of rooms) await worker.emitToRoom(endpointId, room, 8);
  const schedulers = [worker.newWorkers(), worker.newWorkers()];
  stopAtEnd(() => Promise.all(schedulers.map((scheduler) => scheduler.drain())));
  for (const scheduler of schedulers) new Doorbells(worker.deps, scheduler).ring([endpointId]);
  const open = () => worker.deps.database.prisma.webhookDelivery.count({ where: { completedAt: null } });
  await eventually(async () => (await open()) === 0);
  await Promise.all(schedulers.map((scheduler) => scheduler.drain()));
  expect([overlaps, failures]).toEqual([0, 8]);
  for (const room of rooms) expect(arrived.get(room)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

test('two workers keep to a maximum of concurrent attempts', async () => {
  let now = 0;
  let most = 0;
  const receiver = await startReceiver((_request, response) => {
    most = Math.max(most, (now += 1));
    setTimeout(() => {
      now -= 1;
      response.end();
    }, 5);
  });
  const endpointId = await gatedEndpoint({ maxConcurrent: 2 }, receiver.url);
  await worker.emit(endpointId, 30);
  const schedulers = [worker.newWorkers(), worker.newWorkers()];
  stopAtEnd(() => Promise.all(schedulers.map((scheduler) => scheduler.drain())));
  for (const scheduler of schedulers) new Doorbells(worker.deps, scheduler).ring([endpointId]);
  await eventually(() => receiver.requests.length === 30);
  await Promise.all(schedulers.map((scheduler) => scheduler.drain()));
  expect(most).toBe(2);
});

test('a delivery with the headers of Standard Webhooks verifies with the library of that specification', async () => {
  const receiver = await startReceiver();
  const endpointId = await worker.newEndpoint(receiver.url);
  const [first] = await worker.emit(endpointId);
  const id = first!.id;
  worker.clock.set(new Date());
  await worker.deps.database.prisma.webhookEndpoint.update({
    where: { id: endpointId },
    data: { standardWebhooks: true },
  });
  expect(await worker.attempt(id)).toBe(true);
  await worker.deps.database.prisma.webhookEndpoint.update({
    where: { id: endpointId },
    data: { standardWebhooks: false },
  });
  const [second] = await worker.emit(endpointId);
  expect(await worker.attempt(second!.id)).toBe(true);

  const [standard, plain] = receiver.requests;
  const { eventId } = await worker.row(id);
  expect(standard!.headers).toMatchObject({ 'webhook-id': eventId, 'x-service-delivery-id': id });
  const headers = standard!.headers as Record<string, string>;
  const library = new Webhook(TEST_SECRET);
  expect(library.verify(standard!.body, headers)).toMatchObject({ id: eventId });
  expect(() => library.verify(`${standard!.body.toString()} `, headers)).toThrow();
  expect(() =>
    new Webhook(`whsec_${Buffer.alloc(32, 6).toString('base64')}`).verify(standard!.body, headers),
  ).toThrow();
  expect(Object.keys(plain!.headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
});
