import { createHash, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ATTEMPTS_PER_RUN } from '@callplane/core';
import { claimOperation } from '@callplane/db';
import { NoticeListener, publishNotice } from '@callplane/queue';
import { eventually, stopAtEnd } from '@callplane/testing';
import { after, before, NOON, startTestWorker, type TestWorker } from '../worker.testkit.js';
import { settleExhausted } from '@callplane/operations';
import { KINDS } from '../operations/kinds.js';
import { sweepExpired } from './sweep.js';

let worker: TestWorker;
const notices: string[] = [];
beforeAll(async () => {
  worker = await startTestWorker();
  const listener = new NoticeListener(worker.redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => listener.close());
  listener.on('operationSettled', (id) => notices.push(id));
  // A notice that is published before the subscription is lost.
  await eventually(async () => {
    await publishNotice(worker.deps.producer.redis, 'operationSettled', 'probe');
    return notices.includes('probe');
  });
});

describe('an operation whose lease expires in the last attempt', () => {
  test('is settled as failed with LEASE_EXPIRED, and a notice is published', async () => {
    const [last, held, notLast] = [
      await worker.newOperation(),
      await worker.newOperation(),
      await worker.newOperation(),
    ];
    await worker.sql(
      `UPDATE runtime_operations SET attempts = 7, run_attempts = ${ATTEMPTS_PER_RUN - 1} WHERE id <> '${notLast}'`,
    );
    for (const id of [last, held, notLast]) await claimOperation(worker.deps.database.sql, id, randomUUID(), 60_000);
    await worker.sql(
      `UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second' WHERE id <> '${held}'`,
    );
    await settleExhausted(worker.deps, KINDS);
    expect(await worker.row(last)).toMatchObject({
      status: 'failed',
      attempts: 8,
      lastError: { code: 'LEASE_EXPIRED', message: expect.any(String) },
      leaseToken: null,
      completedAt: null,
    });
    expect(await worker.row(held)).toMatchObject({ status: 'pending', leaseToken: expect.any(String) });
    expect(await worker.row(notLast)).toMatchObject({ status: 'pending', attempts: 1 });
    await eventually(() => notices.includes(last));
    expect(notices).not.toContain(held);
  });
});

test('the sweep deletes more expired idempotency records than fit in a batch and expired console sessions, and keeps the others', async () => {
  const { prisma } = worker.deps.database;
  await prisma.idempotencyRecord.createMany({
    data: Array.from({ length: 1204 }, (_, n) => ({
      environmentId: worker.tenant.environmentId,
      route: 'POST /v1/rooms',
      key: `key-${n}`,
      requestHash: new Uint8Array(createHash('sha256').digest()),
      made: '{}',
      createdAt: before(90_000),
      expiresAt: n < 1201 ? (n === 0 ? NOON : before(1)) : after(1),
    })),
  });
  const session = (n: number) => ({
    id: `cses_${n}`,
    environmentId: worker.tenant.environmentId,
    secretHash: new Uint8Array(createHash('sha256').update(String(n)).digest()),
    scopes: [],
    readOnly: true,
    lifetimeSeconds: 60,
    createdAt: before(120),
    expiresAt: n === 0 ? before(60) : after(3600),
  });
  await prisma.consoleSession.createMany({ data: [session(0), session(1)] });
  await sweepExpired(worker.deps);
  expect(await prisma.consoleSession.findMany({ select: { id: true } })).toEqual([{ id: 'cses_1' }]);
  const kept = await prisma.idempotencyRecord.findMany({ select: { key: true }, orderBy: { key: 'asc' } });
  expect(kept.map(({ key }) => key)).toEqual(['key-1201', 'key-1202', 'key-1203']);
});
