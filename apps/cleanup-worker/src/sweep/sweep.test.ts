import { createHash, randomUUID } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ATTEMPTS_PER_RUN } from '@callplane/core';
import { claimOperation, takeUnwokenOperations } from '@callplane/db';
import { NoticeListener, QUEUE_OF_OPERATION } from '@callplane/queue';
import { eventually, stopAtEnd } from '@callplane/testing';
import { after, before, NOON, startTestWorker, type TestWorker } from '../worker.testkit.js';
import { sweepExpired, sweepOperations } from './sweep.js';

let worker: TestWorker;
const notices: string[] = [];
beforeAll(async () => {
  worker = await startTestWorker();
  const listener = new NoticeListener(worker.redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => listener.close());
  listener.on('operationSettled', (id) => notices.push(id));
});
beforeEach(async () => {
  await eventually(() => worker.deps.producer.redis.status === 'ready');
  await worker.sql('TRUNCATE runtime_operations');
  await worker.deps.producer.redis.flushall();
});
afterEach(() => worker.redis.thaw());

/** Rows that are due and whose last wake-up lies a minute back. */
async function forgotten(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push(await worker.newOperation());
  await forget();
  return ids;
}
const forget = () =>
  worker.sql(`UPDATE runtime_operations
    SET due_at = due_at - interval '1 minute', woken_at = woken_at - interval '1 minute'`);
const waitingJobs = () => worker.deps.producer.waitingCount(Object.values(QUEUE_OF_OPERATION));

const freeze = () => {
  worker.redis.freeze();
  return Promise.resolve();
};
const thaw = () => {
  worker.redis.thaw();
  return Promise.resolve();
};

describe('wakes what was forgotten', () => {
  test('once, however many sweeps run at the same time', async () => {
    const ids = await forgotten(40);
    await Promise.all(Array.from({ length: 6 }, () => sweepOperations(worker.deps)));
    const rows = await worker.deps.database.prisma.runtimeOperation.findMany();
    expect(rows).toHaveLength(ids.length);
    expect(new Set(rows.map(({ wakeUps }) => wakeUps))).toEqual(new Set([2]));
    expect(await waitingJobs()).toBe(ids.length);
    // And not again while that wake-up is young.
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(ids.length);
  });

  test('again when that wake-up was lost too', async () => {
    const [id] = await forgotten(1);
    await sweepOperations(worker.deps);
    await worker.deps.producer.redis.flushall();
    await worker.sql(`UPDATE runtime_operations SET woken_at = now() - interval '9 s'`);
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(1);
    expect(await worker.row(id!)).toMatchObject({ wakeUps: 3 });
  });

  test('also behind a job of the same row that died with its worker before it claimed', async () => {
    const [id] = await forgotten(1);
    // Such a job stays in Redis, and its id swallows every job that has the same.
    await worker.deps.producer.wake({ queue: 'room-end', row: { id: id!, run: 1, runAttempts: 0, wakeUps: 1 } });
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(2);
  });

  test('and leaves alone what was woken lately, is not due, is held, or is settled', async () => {
    const [lately, later, held, completed, failed] = await forgotten(5);
    await worker.sql(`UPDATE runtime_operations SET woken_at = now() - interval '3 s' WHERE id = '${lately}'`);
    await worker.sql(`UPDATE runtime_operations SET due_at = now() + interval '1 s' WHERE id = '${later}'`);
    await claimOperation(worker.deps.database.prisma, held!, randomUUID(), 60_000);
    await worker.sql(
      `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE id = '${completed}'`,
    );
    await worker.sql(`UPDATE runtime_operations SET status = 'failed' WHERE id = '${failed}'`);
    const rows = await worker.deps.database.prisma.runtimeOperation.findMany({ orderBy: { id: 'asc' } });
    await sweepOperations(worker.deps);
    expect(await worker.deps.database.prisma.runtimeOperation.findMany({ orderBy: { id: 'asc' } })).toEqual(rows);
    expect(await waitingJobs()).toBe(0);
  });

  test('a row whose worker died is woken as soon as its lease has run out', async () => {
    const [id] = await forgotten(1);
    await claimOperation(worker.deps.database.prisma, id!, randomUUID(), 60_000);
    await worker.sql("UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second'");
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(1);
    expect(await worker.row(id!)).toMatchObject({ status: 'pending', attempts: 1 });
  });

  test('in batches of the size asked for', async () => {
    await forgotten(20);
    await worker.sql('ANALYZE runtime_operations');
    expect(await takeUnwokenOperations(worker.deps.database.prisma, 8000, 7)).toHaveLength(7);
    expect(await takeUnwokenOperations(worker.deps.database.prisma, 8000, 20)).toHaveLength(13);
  });

  test('but adds nothing to a queue that the workers are behind with', async () => {
    await worker.newRoom();
    const roomId = await worker.newRoom();
    await worker.sql(`
      INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
      SELECT 'part_backlog' || n, '${worker.tenant.environmentId}', '${roomId}', 'Ada', '{}', 'participant', now(), now()
      FROM generate_series(1, 1600) n`);
    await worker.sql(`
      INSERT INTO runtime_operations (id, environment_id, room_id, participant_id, kind, status, created_at)
      SELECT 'op' || substr(id, 5), environment_id, room_id, id, 'participant.remove', 'pending', now()
      FROM participants WHERE room_id = '${roomId}'`);
    await forget();
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(1000);
    await forget();
    await sweepOperations(worker.deps);
    expect(await waitingJobs()).toBe(1000);
  });
});

describe('takes no row while Redis is away', () => {
  test.each([
    ['frozen', freeze, thaw],
    ['gone', () => worker.redis.stop(), () => worker.redis.start()],
  ] as const)('%s', async (_state, away, back) => {
    const [id] = await forgotten(1);
    const row = await worker.row(id!);
    await away();
    await sweepOperations(worker.deps);
    expect(await worker.row(id!)).toEqual(row);
    await back();
    await eventually(() => worker.deps.producer.redis.status === 'ready');
    await eventually(async () => {
      await sweepOperations(worker.deps);
      return (await waitingJobs()) === 1;
    });
    expect(await worker.row(id!)).toMatchObject({ wakeUps: 2 });
  });
});

describe('settles leases that ran out in the last attempt', () => {
  test('as failed, with LEASE_EXPIRED, and tells of it', async () => {
    const [last, held, notLast] = await forgotten(3);
    await worker.sql(
      `UPDATE runtime_operations SET attempts = 7, run_attempts = ${ATTEMPTS_PER_RUN - 1} WHERE id <> '${notLast}'`,
    );
    for (const id of [last, held, notLast])
      await claimOperation(worker.deps.database.prisma, id!, randomUUID(), 60_000);
    await worker.sql(
      `UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second' WHERE id <> '${held}'`,
    );
    await sweepOperations(worker.deps);
    expect(await worker.row(last!)).toMatchObject({
      status: 'failed',
      attempts: 8,
      lastError: { code: 'LEASE_EXPIRED', message: expect.any(String) },
      leaseToken: null,
      completedAt: null,
    });
    expect(await worker.row(held!)).toMatchObject({ status: 'pending', leaseToken: expect.any(String) });
    expect(await worker.row(notLast!)).toMatchObject({ status: 'pending', wakeUps: 2 });
    await eventually(() => notices.includes(last!));
    expect(notices).not.toContain(held);
  });
});

test('expired idempotency records are deleted, however many, and the others are kept', async () => {
  const { prisma } = worker.deps.database;
  await prisma.idempotencyRecord.createMany({
    data: Array.from({ length: 1204 }, (_, n) => ({
      environmentId: worker.tenant.environmentId,
      route: 'POST /v1/rooms',
      key: `key-${n}`,
      requestHash: new Uint8Array(createHash('sha256').digest()),
      responseStatus: 201,
      responseBody: '{}',
      createdAt: before(90_000),
      expiresAt: n < 1201 ? (n === 0 ? NOON : before(1)) : after(1),
    })),
  });
  await sweepExpired(worker.deps);
  const kept = await prisma.idempotencyRecord.findMany({ select: { key: true }, orderBy: { key: 'asc' } });
  expect(kept.map(({ key }) => key)).toEqual(['key-1201', 'key-1202', 'key-1203']);
});
