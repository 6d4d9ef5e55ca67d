import { expect, test } from '@jest/globals';
import { acceptRoomEnd } from '@callplane/db';
import { eventually } from '@callplane/testing';
import { attemptsIn } from './faults.testkit.js';
import { closedGate, deliveriesIn, startReceiver, startWebhookStack } from './webhooks.testkit.js';

/** Long enough that no worker of these tests loses a lease because the machine is slow. */
const LEASE_MS = '6000';

test('workers that are frozen beyond their leases write nothing over their successors, and work again when they thaw', async () => {
  const [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const spawnPair = () => Promise.all([stack.spawnWorker({ LEASE_MS }), stack.spawnWebhookWorker({ LEASE_MS })]);
  const [api, [cleaner, sender]] = await Promise.all([stack.spawnApi(), spawnPair()]);
  await stack.register(api, receiver);
  const gate = closedGate();
  const known = receiver.requests.length;
  // The response to the frozen worker, 400, would end the delivery as rejected.
  receiver.answer = () => (receiver.requests.length === known + 1 ? gate.opened.then(() => 400) : 200);
  await stack.newRoom(api);
  await eventually(() => receiver.requests.length === known + 1);
  const { deliveryId, event } = receiver.requests[known]!;
  sender.freeze();
  // An accepted end, which no worker has been woken for.
  const [roomId = ''] = await stack.seedRooms(1);
  const accepted = await acceptRoomEnd(stack.database, stack.tenant, roomId, new Date());
  const operationId = accepted!.operation.id;
  // The claim of the cleanup worker waits for this lock and succeeds after the freeze: the worker holds the lease and
  // has done nothing yet.
  await stack.database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM runtime_operations WHERE id = ${operationId} FOR UPDATE`;
    await stack.producer.wakeOperations([accepted!.wake!]);
    await eventually(async () => {
      const [row] = await stack.database.sql.$queryRaw<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.count === 1;
    });
    cleaner.freeze();
  });
  await eventually(async () => (await stack.operationOf(roomId))?.leaseToken != null);

  await spawnPair();
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
  receiver.check();
});
