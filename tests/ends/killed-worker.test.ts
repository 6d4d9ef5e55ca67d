import { expect, test } from '@jest/globals';
import { CONCURRENCY_PER_WORKER, TURN_DELIVERIES_MAX } from '@callplane/core';
import { eventually } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { closedGate, deliveriesIn, startReceiver, startWebhookStack } from '../faults/webhooks.testkit.js';

/** Long enough that no worker of these tests loses a lease because the machine is slow. */
const LEASE_MS = '6000';
/** Within which the contract promises the next attempt. */
const FOUND_WITHIN_MS = 15_000;

test('after a cleanup worker and a webhook worker are killed at work, others complete it and repeat only attempts that were in flight', async () => {
  const [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const spawnPair = () => Promise.all([stack.spawnWorker({ LEASE_MS }), stack.spawnWebhookWorker({ LEASE_MS })]);
  const [api, killed] = await Promise.all([stack.spawnApi(), spawnPair()]);
  await stack.register(api, receiver);
  const ending = await stack.newRoom(api);
  await stack.join(ending);
  // After a quick success a turn may claim several deliveries of the endpoint.
  await stack.allDelivered();
  const known = receiver.requests.length;
  const gate = closedGate();
  receiver.answer = () => gate.opened.then(() => 200);
  const rooms = await Promise.all(Array.from({ length: 40 }, () => stack.newRoom(api)));

  const claimed = await stack.holding([ending], async () => {
    const { status } = await stack.call(api, 'DELETE', `/v1/rooms/${ending}`, { prefer: 'respond-async' });
    expect(status).toBe(202);
    const operation = await eventually(async () => {
      const row = await stack.operationOf(ending);
      return row?.leaseToken == null ? null : row;
    });
    // How many turns of the endpoint have begun depends on the machine.
    await eventually(() => receiver.requests.length > known);
    for (const worker of killed) worker.kill('SIGKILL');
    await Promise.all(killed.map(({ exited }) => exited));
    return operation;
  });
  // By the answer of another process, the receiver has read everything that the killed worker had sent.
  await stack.call(api, 'GET', '/v1/webhooks');
  const inFlight = receiver.requests.slice(known).map(({ event }) => event.id);
  gate.open();

  const [, heir] = await spawnPair();
  const completed = await stack.completed(ending);
  const expiredAtMs = claimed.leaseExpiresAt!.getTime();
  const lateMs = completed.completedAt!.getTime() - expiredAtMs;
  measured({ 'ms from the end of the lease to completion': lateMs });
  expect(completed).toMatchObject({ attempts: 2, runAttempts: 2, leaseToken: null, lastError: null });
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(FOUND_WITHIN_MS);
  const { prisma } = stack.database;
  expect(await prisma.participantSession.count({ where: { roomId: ending, endedAt: null } })).toBe(0);

  await stack.allDelivered();
  expect([...receiver.rooms('room.created').keys()]).toEqual(expect.arrayContaining(rooms));
  expect(receiver.rooms('room.ended')).toEqual(new Map([[ending, 1]]));
  const twice = [...receiver.counts()].filter(([, count]) => count > 1);
  expect(new Map(twice)).toEqual(new Map(inFlight.map((id) => [id, 2])));
  // Each turn of the killed worker had claimed several deliveries, and sent one of them.
  const lost = await stack.leasesLost();
  expect([...lost.keys()]).toEqual(expect.arrayContaining(inFlight));
  expect(lost.size).toBeLessThanOrEqual(CONCURRENCY_PER_WORKER * TURN_DELIVERIES_MAX);
  expect([...lost.values()].every((count) => count === 1)).toBe(true);
  // The log lines arrive through a pipe, later than the rows.
  await eventually(() => deliveriesIn(heir).length >= rooms.length);
  receiver.check();
});
