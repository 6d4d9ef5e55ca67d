import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { randomUUID } from 'node:crypto';
import {
  claimDeliveries,
  findDelivery,
  retryDelivery,
  settleDeliveries,
  updateWebhookEndpoint,
  type Claim,
  type ClaimedDelivery,
  type DeliveryRow,
} from '@callplane/db';
import { Webhook } from 'standardwebhooks';
import { startReceiver } from '../receivers.testkit.js';
import { sweepDeliveries, sweepRecoveries } from '../sweep/sweep.js';
import { endedAttempt, NOON, startTestWorker, TEST_SECRET, type TestWorker } from '../worker.testkit.js';

const NOWHERE = 'http://127.0.0.1:1/';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() =>
  worker.sql(
    'TRUNCATE webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts, events, ' +
      'webhook_recoveries',
  ),
);

type Limits = Partial<Record<'ordering', string> & Record<'maxPerSecond' | 'maxConcurrent', number>>;

async function limitedEndpoint(limits: Limits, url = NOWHERE): Promise<string> {
  const id = await worker.newEndpoint(url, { slotMs: 64 });
  await worker.deps.database.prisma.webhookEndpoint.update({ where: { id }, data: limits });
  return id;
}

function claim(endpointId: string, afterRoomId = ''): Promise<Claim> {
  const { leaseMs } = worker.deps;
  const limits = { leaseMs, deliveriesMax: 8 };
  const request = { endpointId, lane: 'fast' as const, token: randomUUID(), ...limits, afterRoomId };
  return claimDeliveries(worker.deps.database, request);
}

/** Settles a claimed delivery as a worker does. */
async function settle(delivery: ClaimedDelivery, status: 'succeeded' | 'pending', delayMs = 0): Promise<void> {
  const ended =
    status === 'succeeded'
      ? endedAttempt(delivery, 'success')
      : endedAttempt(delivery, 'response', { status, delayMs });
  await settleDeliveries(worker.deps.database.sql, [ended]);
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
    const endpointId = await limitedEndpoint({ ordering: 'room' });
    const [a1, a2, a3] = await worker.emitToRoom(endpointId, newId('room'), 3);
    const [b1] = await worker.emitToRoom(endpointId, newId('room'), 2);
    const [none] = await worker.emit(endpointId);
    const first = await claim(endpointId);
    expect(new Set(ids(first))).toEqual(new Set([a1, b1, none!.id]));
    expect(first).toMatchObject({ endpoint: { isLimited: true }, isMore: false });
    expect(ids(await claim(endpointId))).toEqual([]);

    const head = first.claimed.find(({ id }) => id === a1)!;
    // An attempt that failed keeps the others waiting until its retry has finished.
    await settle(head, 'pending', 3_600_000);
    expect(ids(await claim(endpointId))).toEqual([]);
    expect(await read(endpointId, a3!)).toMatchObject({ blockedBy: a1, nextAttemptAt: null });
    await worker.sql(`UPDATE webhook_deliveries SET due_at = now() WHERE id = '${a1}'`);
    const retry = await claim(endpointId);
    expect(ids(retry)).toEqual([a1]);
    await settle(retry.claimed[0]!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual([a2]);
  });

  test('shows the delivery that another one waits for before any worker has looked at it', async () => {
    const endpointId = await limitedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    expect(await read(endpointId, first!)).toMatchObject({ blockedBy: null, nextAttemptAt: expect.any(Date) });
    for (const id of [second, third])
      expect(await read(endpointId, id!)).toMatchObject({ blockedBy: first, nextAttemptAt: null });
    await worker.deps.database.prisma.webhookEndpoint.update({ where: { id: endpointId }, data: { ordering: 'none' } });
    expect(await read(endpointId, third!)).toMatchObject({ blockedBy: null, nextAttemptAt: expect.any(Date) });
  });

  test('gets a replay beside first runs that wait, but never at the same time as another event of the room', async () => {
    const endpointId = await limitedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    await settle((await claim(endpointId)).claimed[0]!, 'succeeded');
    await replay(first!);
    // Either the replay or the second event: both are first of their lines.
    const [one, ...others] = (await claim(endpointId)).claimed;
    expect(others).toEqual([]);
    expect(ids(await claim(endpointId))).toEqual([]);
    await settle(one!, 'pending', 3_600_000);
    const [other] = (await claim(endpointId)).claimed;
    expect(new Set([one!.id, other!.id])).toEqual(new Set([first, second]));
    // A replay that waits for its retry blocks no first run, and the other way round.
    await settle(other!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual(one!.id === first ? [third] : []);
  });

  test('gets replays of one room in order', async () => {
    const endpointId = await limitedEndpoint({ ordering: 'room' });
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
    const endpointId = await limitedEndpoint({ ordering: 'room' });
    const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
    const { claimed } = await claim(endpointId);
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
    const retry = await claim(endpointId);
    expect([ids(retry), ids(await claim(endpointId))]).toEqual([[first], []]);
    expect(await read(endpointId, third!)).toMatchObject({ blockedBy: first });
    await settle(retry.claimed[0]!, 'succeeded');
    expect(ids(await claim(endpointId))).toEqual([second]);
  });
});

test('an endpoint with an order gets the next event of a room when the run of the one before has expired', async () => {
  const endpointId = await limitedEndpoint({ ordering: 'room' });
  const [first, second] = await worker.emitToRoom(endpointId, newId('room'), 2);
  await settle((await claim(endpointId)).claimed[0]!, 'pending', 3_600_000);
  await worker.sql(`UPDATE webhook_deliveries SET run_started_at = now() - interval '8 days' WHERE id = '${first}'`);
  await sweepDeliveries(worker.deps);
  expect(ids(await claim(endpointId))).toEqual([second]);
});

test('an endpoint with an order is served from the room after the last one on, and around', async () => {
  const endpointId = await limitedEndpoint({ ordering: 'room' });
  const heads: string[] = [];
  for (let n = 0; n < 20; n += 1) heads.push((await worker.emitToRoom(endpointId, `room_${10 + n}`, 2))[0]!);
  const first = await claim(endpointId, 'room_24');
  expect([ids(first).sort(), first.isMore]).toEqual([[...heads.slice(15), ...heads.slice(0, 3)].sort(), true]);
  const second = await claim(endpointId, 'room_12');
  expect(ids(second).sort()).toEqual(heads.slice(3, 11).sort());
  expect(await claim(endpointId, 'room_20')).toMatchObject({ claimed: { length: 4 }, isMore: false });
});

test('switching the order off sends the deliveries that waited', async () => {
  const endpointId = await limitedEndpoint({ ordering: 'room' });
  await worker.emitToRoom(endpointId, newId('room'), 5);
  expect((await claim(endpointId)).claimed).toHaveLength(1);
  const change = { ordering: 'none' } as const;
  expect(await updateWebhookEndpoint(worker.deps.database, worker.tenant, endpointId, change, NOON)).toMatchObject({
    deliveries: [{ endpointId }],
  });
  expect((await claim(endpointId)).claimed).toHaveLength(4);
});

test('switching the order on applies to deliveries that are pending already', async () => {
  const endpointId = await worker.newEndpoint(NOWHERE);
  const [first, second, third] = await worker.emitToRoom(endpointId, newId('room'), 3);
  // In flight while the order is switched on.
  const [inFlight] = await worker.claim(endpointId, 1);
  expect(first).toBe(inFlight!.id);
  await updateWebhookEndpoint(worker.deps.database, worker.tenant, endpointId, { ordering: 'room' }, NOON);
  expect(ids(await claim(endpointId))).toEqual([]);
  for (const id of [second, third]) expect(await read(endpointId, id!)).toMatchObject({ blockedBy: first });
  await settle(inFlight!, 'succeeded');
  expect(ids(await claim(endpointId))).toEqual([second]);
});

test('concurrent claims never put two deliveries of a room in flight, nor more than the maximum', async () => {
  const endpointId = await limitedEndpoint({ ordering: 'room', maxConcurrent: 3 });
  const rooms = Array.from({ length: 5 }, () => newId('room'));
  for (const room of rooms) await worker.emitToRoom(endpointId, room, 12);
  const { prisma } = worker.deps.database;
  const order: { roomId: string | null; sequence: number | null; replayCount: number }[] = [];
  let open = 5 * 12;
  let mostInFlight = 0;
  const work = async (): Promise<void> => {
    while (open > 0) {
      const { claimed } = await claim(endpointId);
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
    }
  };
  await Promise.all(Array.from({ length: 6 }, work));
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
  const endpointId = await limitedEndpoint({ maxPerSecond: 10 });
  await worker.emit(endpointId, 40);
  const { sql } = worker.deps.database;
  const [{ ms: startedAtMs }] = await sql.$queryRaw<[{ ms: number }]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  const times: number[] = [];
  let refusals = 0;
  const work = async (): Promise<void> => {
    while (times.length < 25) {
      const { claimed, endpoint } = await claim(endpointId);
      times.push(...claimed.map(({ startedAt }) => startedAt.getTime()));
      if (claimed.length === 0 && endpoint!.paceMs! > 0) refusals += 1;
    }
  };
  await Promise.all([work(), work(), work()]);
  times.sort((a, b) => a - b);
  expect(refusals).toBeGreaterThan(0);
  // GCRA: attempt n begins no earlier than n intervals after the start, less the burst. A millisecond for rounding.
  const early = times.map((ms, index) => ms - startedAtMs - (index * 100 - 40)).filter((slack) => slack < -1);
  expect(early).toEqual([]);
});

test('a claim of an endpoint with 10,000 open rooms reads only its own rows', async () => {
  const endpointId = await limitedEndpoint({ ordering: 'room' });
  await worker.sql(`
    WITH event AS (
      INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
      SELECT 'evt_' || n, '${worker.tenant.environmentId}', 'webhook.test', 'room_' || (10000 + n / 3),
        n % 3 + 1, '{}', now() FROM generate_series(0, 29999) n RETURNING id, room_id, sequence
    )
    INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
      created_at)
    SELECT 'dlv_' || id, '${worker.tenant.environmentId}', '${endpointId}', id, 'webhook.test', room_id,
      sequence, 'pending', now() FROM event`);
  await worker.sql('VACUUM ANALYZE webhook_deliveries');
  expect((await claim(endpointId, 'room_14000')).claimed).toHaveLength(8);
  const startedAt = performance.now();
  for (let n = 0; n < 20; n += 1) expect((await claim(endpointId, `room_${10_100 + 9 * n}`)).claimed).toHaveLength(8);
  expect(performance.now() - startedAt).toBeLessThan(5000);
  // All heads wait for a retry: the claim walks around once.
  await worker.sql(`UPDATE webhook_deliveries SET due_at = now() + interval '1 hour' WHERE sequence = 1`);
  expect(await claim(endpointId)).toMatchObject({ claimed: [], isMore: false });
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
