import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
import type { WebhookEvent } from '@callplane/webhook-verifier';
import { measured } from './faults.testkit.js';
import {
  deliveriesIn,
  startReceiver,
  startWebhookStack,
  type Receiver,
  type WebhookStack,
} from './webhooks.testkit.js';

let stack: WebhookStack;
let api: TestApp;
let workers: [TestApp, TestApp];
let receiver: Receiver;
let endpointId: string;
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const apps = await Promise.all([
    stack.spawnApi(),
    stack.spawnWebhookWorker(),
    stack.spawnWebhookWorker(),
    stack.spawnWorker(),
  ]);
  api = apps[0];
  workers = [apps[1], apps[2]];
  endpointId = await stack.register(api, receiver);
});
afterEach(() => receiver.check());

const roomOf = ({ data }: WebhookEvent) => (data['room'] as { id: string } | undefined)?.id;

/** All events that the API lists, over all pages. */
async function eventsOf(query: string): Promise<WebhookEvent[]> {
  const events: WebhookEvent[] = [];
  for (let after = ''; ;) {
    const { status, body } = await stack.call(api, 'GET', `/v1/events?limit=50${query}${after}`);
    expect(status).toBe(200);
    events.push(...(body.data as WebhookEvent[]));
    if (body.nextCursor === null || body.data.length === 0) return events;
    after = `&after=${String(body.nextCursor)}`;
  }
}

test('every event of created and ended rooms arrives once, signed and numbered without a gap', async () => {
  const rooms = await Promise.all(Array.from({ length: 15 }, () => stack.newRoom(api)));
  await Promise.all(
    rooms.map(async (roomId, index) => {
      await stack.join(roomId, index % 3);
      const { status } = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
      expect([202, 204]).toContain(status);
    }),
  );
  await eventually(() => receiver.rooms('room.ended').size === rooms.length);
  await stack.allDelivered();
  expect(new Set(receiver.counts().values())).toEqual(new Set([1]));
  for (const [index, roomId] of rooms.entries()) {
    const arrived = receiver.requests
      .map(({ event }) => event)
      .filter((event) => roomOf(event) === roomId)
      .sort((one, other) => Number(one.sequence) - Number(other.sequence));
    const left = Array.from({ length: index % 3 }, () => 'participant.left');
    expect(arrived.map(({ sequence }) => sequence)).toEqual(arrived.map((_, n) => n + 1));
    expect(arrived[0]?.type).toBe('room.created');
    expect(arrived.map(({ type }) => type).sort()).toEqual([...left, 'room.created', 'room.ended']);
    expect(await eventsOf(`&roomId=${roomId}`)).toEqual(arrived);
  }
  await eventually(async () => {
    const listed = await eventsOf('');
    expect(listed.map(({ id }) => id).sort()).toEqual([...receiver.counts().keys()].sort());
    return true;
  });
});

test('deliveries that two workers are woken for many times are each sent once', async () => {
  const before = workers.map((worker) => deliveriesIn(worker).length);
  const known = receiver.requests.length;
  const rooms = await Promise.all(Array.from({ length: 40 }, () => stack.newRoom(api)));
  const rows = await stack.database.prisma.webhookDelivery.findMany({
    orderBy: { id: 'desc' },
    take: rooms.length,
    select: { id: true, endpointId: true },
  });
  for (let n = 0; n < 20; n += 1) for (const row of rows) await stack.producer.wakeDeliveries([row]);
  await stack.allDelivered();
  await eventually(async () => (await stack.producer.waitingCount(['webhook-delivery'])) === 0);
  expect(receiver.requests).toHaveLength(known + rooms.length);
  expect(new Set(receiver.counts().values())).toEqual(new Set([1]));
  const [first, second] = workers.map((worker, n) => deliveriesIn(worker).length - (before[n] ?? 0));
  measured({ 'deliveries of the first': first ?? 0, 'of the second': second ?? 0 });
});

test('exactly one of several concurrent replays succeeds', async () => {
  const roomId = await stack.newRoom(api);
  const { event, deliveryId } = await eventually(() => receiver.requests.find(({ event }) => roomOf(event) === roomId));
  await stack.allDelivered();
  const path = `/v1/webhooks/${endpointId}/deliveries/${deliveryId}/replay`;
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => stack.call(api, 'POST', path, { body: { expectedReplayCount: 0 } })),
  );
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
  const codes = answers.filter(({ status }) => status !== 202).map(({ body }) => String(body.error.code));
  expect(new Set(codes)).toEqual(new Set(['REPLAY_COUNT_MISMATCH']));
  await stack.allDelivered();
  const replays = receiver.requests.filter((request) => request.deliveryId === deliveryId);
  expect(replays.map(({ replayCount }) => replayCount)).toEqual([0, 1]);
  expect(new Set(replays.map((request) => request.event.id))).toEqual(new Set([event.id]));
});

test('a replay and new rooms that race the removal of their endpoint leave no open delivery', async () => {
  const outcomes: Record<string, number> = {};
  for (let round = 0; round < 10; round += 1) {
    const name = `removed-${round}`;
    const id = await stack.register(api, receiver, name);
    const { body: tested } = await stack.call(api, 'POST', `/v1/webhooks/${id}/test`);
    const path = `/v1/webhooks/${id}/deliveries/${String(tested.id)}`;
    await eventually(async () => (await stack.call(api, 'GET', path)).body.status === 'succeeded');
    const [replayed, removed] = await Promise.all([
      stack.call(api, 'POST', `${path}/replay`, { body: { expectedReplayCount: 0 } }),
      stack.call(api, 'DELETE', `/v1/webhooks/${id}`),
      ...Array.from({ length: 6 }, () => stack.newRoom(api)),
    ]);
    expect(removed.status).toBe(204);
    expect([202, 404]).toContain(replayed.status);
    await eventually(async () => {
      const open = await stack.database.prisma.webhookDelivery.findMany({
        where: { endpointId: id, status: { in: ['pending', 'delivering'] } },
      });
      expect(open).toEqual([]);
      return true;
    });
    const { body: delivery } = await stack.call(api, 'GET', path);
    const after = [delivery.status, delivery.failureReason, delivery.replayCount].join(' ');
    expect(replayed.status === 202 ? ['succeeded  1', 'failed endpoint_deleted 1'] : ['succeeded  0']).toContain(after);
    outcomes[`${replayed.status} ${after}`] = (outcomes[`${replayed.status} ${after}`] ?? 0) + 1;
  }
  measured({ outcomes: JSON.stringify(outcomes) });
});

test('while secrets rotate, each delivery is signed with the secret of the version that it names', async () => {
  const known = receiver.requests.length;
  let rotating = true;
  const traffic = Promise.all(
    Array.from({ length: 3 }, async () => {
      while (rotating) await stack.newRoom(api);
    }),
  );
  for (let version = 2; version <= 12; version += 1) {
    const { status, body } = await stack.call(api, 'POST', `/v1/webhooks/${endpointId}/rotate-secret`);
    expect({ status, version: body.signingKeyVersion }).toEqual({ status: 200, version });
    receiver.learn('/hook', version, String(body.signingSecret));
  }
  rotating = false;
  await traffic;
  await stack.allDelivered();
  const versions = new Set(receiver.requests.slice(known).map(({ version }) => version));
  measured({ versions: versions.size, deliveries: receiver.requests.length - known });
  expect(versions.size).toBeGreaterThan(2);
});
