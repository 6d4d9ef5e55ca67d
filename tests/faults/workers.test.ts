import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { newId, type RoomStatus } from '@callplane/core';
import { acceptRoomEnd } from '@callplane/db';
import { eventually, type TestApp } from '@callplane/testing';
import { attemptsIn, measured, startStack, type Stack } from './faults.testkit.js';

/** Long enough that no worker of these tests loses a lease because the machine is slow. */
const LEASE_MS = 6000;

let stack: Stack;
const workers: TestApp[] = [];
beforeAll(async () => {
  stack = await startStack();
});
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.stop())));

async function spawnWorker(): Promise<TestApp> {
  const worker = await stack.spawnWorker({ LEASE_MS: String(LEASE_MS) });
  workers.push(worker);
  return worker;
}

/** A room with a participant and an accepted end. */
async function endingRoom() {
  const roomId = newId('room');
  const { environmentId } = stack.tenant;
  const now = new Date();
  const status: RoomStatus = 'active';
  await stack.database.prisma.room.create({
    data: {
      id: roomId,
      environmentId,
      name: 'Room',
      metadata: {},
      status,
      maxParticipants: 2,
      createdAt: now,
      startedAt: now,
    },
  });
  await stack.join(roomId);
  const accepted = await acceptRoomEnd(stack.database, stack.tenant, roomId, now);
  return { roomId, operationId: accepted!.operation.id, wake: accepted!.wake! };
}
const sessionsOpen = (roomId: string) =>
  stack.database.prisma.participantSession.count({ where: { roomId, endedAt: null } });

test('after a worker is killed with a lease, another completes the operation once the lease has expired', async () => {
  const killed = await spawnWorker();
  const { roomId, wake } = await endingRoom();
  const claimed = await stack.holding([roomId], async () => {
    await stack.producer.wakeOperations([wake]);
    const row = await eventually(async () => {
      const operation = await stack.operationOf(roomId);
      return operation?.leaseToken == null ? null : operation;
    });
    killed.kill('SIGKILL');
    await killed.exited;
    return row;
  });
  await spawnWorker();
  await stack.ageWakeUps();
  const operation = await stack.completed(roomId);
  measured({
    'ms from the lease running out to completion': operation.completedAt!.getTime() - claimed.leaseExpiresAt!.getTime(),
  });
  expect(operation).toMatchObject({ attempts: 2, runAttempts: 2, leaseToken: null, lastError: null });
  expect(operation.completedAt!.getTime()).toBeGreaterThanOrEqual(claimed.leaseExpiresAt!.getTime());
  expect(await sessionsOpen(roomId)).toBe(0);
});

test('a worker frozen beyond its lease writes nothing over its successor when it thaws', async () => {
  const frozen = await spawnWorker();
  const { roomId, operationId, wake } = await endingRoom();
  // The worker's claim waits for this lock and succeeds after the freeze: the worker holds the lease and has done
  // nothing yet.
  await stack.database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM runtime_operations WHERE id = ${operationId} FOR UPDATE`;
    await stack.producer.wakeOperations([wake]);
    await eventually(async () => {
      const [row] = await stack.database.prisma.$queryRaw<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.count === 1;
    });
    frozen.freeze();
  });
  const held = await eventually(async () => {
    const operation = await stack.operationOf(roomId);
    return operation?.leaseToken == null ? null : operation;
  });
  expect(held).toMatchObject({ attempts: 1 });

  await spawnWorker();
  await stack.ageWakeUps();
  const operation = await stack.completed(roomId);
  expect(operation).toMatchObject({ attempts: 2, leaseToken: null });
  const participants = await stack.database.prisma.participant.findMany({ where: { roomId } });

  frozen.thaw();
  await frozen.waitForLog((line) => line['operationId'] === operationId && line['outcome'] === 'lease_lost');
  expect(await stack.operationOf(roomId)).toEqual(operation);
  expect(await stack.database.prisma.participant.findMany({ where: { roomId } })).toEqual(participants);
  // The thawed worker keeps working.
  const next = await endingRoom();
  await stack.producer.wakeOperations([next.wake]);
  await stack.completed(next.roomId);
});

test('operations that two workers are woken for many times are each attempted once', async () => {
  const pair = await Promise.all([spawnWorker(), spawnWorker()]);
  const rooms = await Promise.all(Array.from({ length: 12 }, endingRoom));
  await stack.producer.wakeOperations(
    Array.from({ length: 20 }, (_, n) => rooms.map(({ wake }) => ({ ...wake, wakeUps: n + 1 }))).flat(),
  );
  const operations = await stack.allCompleted(rooms.map(({ roomId }) => roomId));
  // Waits until every job is processed. (A job of the killed worker may remain.)
  await eventually(async () => {
    const left = await stack.producer.redis.keys('callplane:room-end:op_*');
    return !rooms.some(({ operationId }) => left.some((key) => key.includes(operationId)));
  });
  expect(new Set(operations.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  const attempts = attemptsIn(...pair);
  expect(attempts).toHaveLength(rooms.length);
  expect(new Set(attempts.map((line) => line['operationId'])).size).toBe(rooms.length);
  expect(pair.map((worker) => attemptsIn(worker).length > 0)).toEqual([true, true]);
  measured({ 'rows of the first': attemptsIn(pair[0]).length, 'of the second': attemptsIn(pair[1]).length });
});
