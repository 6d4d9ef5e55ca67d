import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { ATTEMPTS_PER_RUN, BACKOFF_SECONDS } from '@callplane/core';
import { assertLease, claimOperation, settleOperation } from '@callplane/db';
import { NoticeListener } from '@callplane/queue';
import { eventually, stopAtEnd } from '@callplane/testing';
import { startTestWorker, withSteps, type TestWorker, workOnOperation } from '../worker.testkit.js';
import type { Attempt } from '@callplane/operations';
import type { CleanUpStep } from './shared-steps.js';
import { KINDS } from './kinds.js';

let worker: TestWorker;
const notices: string[] = [];
const silent = { onLost: () => undefined, onReady: () => undefined };

beforeAll(async () => {
  worker = await startTestWorker();
  const listener = new NoticeListener(worker.redis.url, silent);
  stopAtEnd(() => listener.close());
  listener.on('operationSettled', (id) => notices.push(id));
  await eventually(() => listener.isListening);
});
afterEach(() => {
  worker.lines.length = 0;
});

const failing = (message: string) =>
  withSteps({ name: 'reach the media server', run: () => Promise.reject(new Error(message)) });
/** Expires the lease of a row and claims the row as another worker. */
async function takeOver(operationId: string): Promise<string> {
  await worker.sql(
    `UPDATE runtime_operations SET lease_expires_at = now() - interval '1 ms' WHERE id = '${operationId}'`,
  );
  const token = randomUUID();
  expect(await claimOperation(worker.deps.database.sql, operationId, token, 60_000)).not.toBeNull();
  return token;
}
const outcomeOf = (operationId: string) =>
  worker.lines.find((line) => line.message === 'operation attempt' && line['operationId'] === operationId);

describe('the claim of an operation', () => {
  test('ignores a row that is leased, settled or missing', async () => {
    const held = await worker.newOperation();
    await claimOperation(worker.deps.database.sql, held, randomUUID(), 60_000);
    const settled = await worker.newOperation();
    await workOnOperation(worker.deps, settled);
    const rows = await Promise.all([held, settled].map((id) => worker.row(id)));
    for (const id of [held, settled, 'op_unknown'])
      expect(await workOnOperation(worker.deps, id, failing('must not run'))).toBeNull();
    expect(await Promise.all([held, settled].map((id) => worker.row(id)))).toEqual(rows);
  });

  test('ignores a row that is not due yet', async () => {
    const id = await worker.newOperation();
    await worker.sql(`UPDATE runtime_operations SET due_at = now() + interval '60 s' WHERE id = '${id}'`);
    expect(await workOnOperation(worker.deps, id, failing('must not run'))).toBeNull();
    expect(await worker.row(id)).toMatchObject({ status: 'pending', attempts: 0 });
  });
});

describe('the worker of an operation', () => {
  test('completes the operation once and publishes a notice', async () => {
    const id = await worker.newOperation();
    await workOnOperation(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({
      status: 'completed',
      attempts: 1,
      completedAt: worker.clock.now(),
      lastError: null,
      leaseToken: null,
      leaseExpiresAt: null,
    });
    await eventually(() => notices.includes(id));
    expect(await eventually(() => outcomeOf(id))).toMatchObject({
      level: 'info',
      outcome: 'completed',
      attempt: 1,
      run: 1,
    });
  });

  test('delays failed attempts by the backoff schedule, fails the run after the eighth, and starts a new run on request', async () => {
    const roomId = await worker.newRoom();
    const { operation } = await worker.endRoom(roomId);
    const { id } = operation;
    for (let attempt = 1; attempt <= ATTEMPTS_PER_RUN; attempt += 1) {
      const [{ now: earliest }] = await worker.deps.database.sql.$queryRaw<[{ now: Date }]>`SELECT now()`;
      const retryInMs = await workOnOperation(worker.deps, id, failing('connect ECONNREFUSED 10.11.12.13:8088'));
      const [{ now: latest }] = await worker.deps.database.sql.$queryRaw<[{ now: Date }]>`SELECT now()`;
      const row = await worker.row(id);
      expect(row).toMatchObject({ attempts: attempt, runAttempts: attempt, leaseToken: null, leaseExpiresAt: null });
      expect(row.lastError).toEqual({
        code: 'STEP_FAILED',
        message: expect.stringContaining('reach the media server'),
      });
      expect(JSON.stringify(row.lastError)).not.toMatch(/10\.11|8088|ECONN/);
      if (attempt === ATTEMPTS_PER_RUN) {
        expect([row, retryInMs]).toMatchObject([{ status: 'failed', completedAt: null }, null]);
        continue;
      }
      expect(row.status).toBe('pending');
      const delayMs = BACKOFF_SECONDS[attempt - 1]! * 1000;
      expect(row.dueAt.getTime()).toBeGreaterThanOrEqual(earliest.getTime() + delayMs - 1);
      expect(row.dueAt.getTime()).toBeLessThanOrEqual(latest.getTime() + delayMs * 1.2 + 1);
      expect(retryInMs).toBeGreaterThanOrEqual(delayMs);
      expect(retryInMs).toBeLessThanOrEqual(delayMs * 1.2);
      await worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 second' WHERE id = '${id}'`);
    }
    await eventually(() => notices.includes(id));
    // Another wake-up does not cause a ninth attempt.
    await workOnOperation(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({ status: 'failed', attempts: 8 });

    const rerun = await worker.endRoom(roomId);
    expect(rerun.operation).toMatchObject({ id, status: 'pending', attempts: 8 });
    expect(await worker.row(id)).toMatchObject({ run: 2, runAttempts: 0 });
    await workOnOperation(worker.deps, id, failing('still away'));
    expect(await worker.row(id)).toMatchObject({ run: 2, runAttempts: 1, attempts: 9, status: 'pending' });
    await worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 second' WHERE id = '${id}'`);
    await workOnOperation(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({ run: 2, attempts: 10, status: 'completed', lastError: null });
  });
});

describe('a worker whose lease was taken over', () => {
  async function overtaken(steps: (takeOver: () => Promise<void>) => CleanUpStep[]) {
    const roomId = await worker.newRoom();
    const participantId = await worker.newParticipant(roomId, { connectedAt: worker.clock.now(), inSession: true });
    const { id } = (await worker.endRoom(roomId)).operation;
    let after: unknown;
    const take = async (): Promise<void> => {
      await takeOver(id);
      after = await worker.row(id);
    };
    await workOnOperation(worker.deps, id, withSteps(...steps(take)));
    expect(await eventually(() => outcomeOf(id))).toMatchObject({ level: 'warn', outcome: 'lease_lost' });
    expect(await worker.row(id)).toEqual(after);
    expect(notices).not.toContain(id);
    const { prisma } = worker.deps.database;
    expect(await prisma.participant.findUnique({ where: { id: participantId } })).toMatchObject({ leftAt: null });
    expect(await prisma.participantSession.count({ where: { roomId, endedAt: null } })).toBe(1);
    expect(await prisma.room.findUnique({ where: { id: roomId } })).toMatchObject({ status: 'ending' });
    return id;
  }
  const steal = (run: () => Promise<void>): CleanUpStep => ({ name: 'stall', run });

  test('writes nothing in its next step', () => overtaken((take) => [steal(take), ...KINDS['room.end'].steps]));
  test('writes nothing in the transaction that settles the operation', () => overtaken((take) => [steal(take)]));
  test('writes nothing when it settles a failure', () =>
    overtaken((take) => [steal(() => take().then(() => Promise.reject(new Error('too late'))))]));

  test('writes nothing when it settles the failure of the last attempt', async () => {
    const id = await worker.newOperation();
    await worker.sql(`UPDATE runtime_operations SET attempts = 6, run_attempts = 6 WHERE id = '${id}'`);
    let token = '';
    const late = steal(async () => {
      token = await takeOver(id);
      throw new Error('too late');
    });
    await workOnOperation(worker.deps, id, withSteps(late));
    expect(await worker.row(id)).toMatchObject({ status: 'pending', attempts: 8, leaseToken: token, lastError: null });
  });

  test('writes nothing if its lease has only expired', async () => {
    const id = await worker.newOperation();
    const claim = await claimOperation(worker.deps.database.sql, id, randomUUID(), 100);
    await worker.sql(`UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second' WHERE id = '${id}'`);
    const { database } = worker.deps;
    await expect(database.transaction((tx) => assertLease(tx, claim!))).rejects.toThrow('lease');
    const end = { status: 'completed', now: new Date() } as const;
    await expect(settleOperation(database.sql, claim!, end)).rejects.toThrow('lease');
    expect(await worker.row(id)).toMatchObject({ status: 'pending', leaseToken: claim?.leaseToken });
  });
});

describe('an attempt of a kind that may take longer than its lease', () => {
  const long = (run: CleanUpStep['run']) => {
    const kind = { ...KINDS['room.end'], steps: [{ name: 'convert', run }], isLong: true };
    return { 'room.end': kind, 'participant.remove': kind };
  };
  const leaseEnd = async (id: string) => (await worker.row(id)).leaseExpiresAt!.getTime();
  /** Short, so that the test waits for half of it only. */
  const brief = () => ({ ...worker.deps, leaseMs: 1500 });

  test('renews the lease until it is over', async () => {
    const id = await worker.newOperation();
    await workOnOperation(
      brief(),
      id,
      long(async () => {
        const claimed = await leaseEnd(id);
        await eventually(async () => (await leaseEnd(id)) > claimed);
        const renewed = await leaseEnd(id);
        await eventually(async () => (await leaseEnd(id)) > renewed);
      }),
    );
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1 });
  });

  test('is aborted when another worker has taken the lease, and writes nothing', async () => {
    const id = await worker.newOperation();
    let token = '';
    const untilAborted = async (_: unknown, __: unknown, { signal }: Attempt) => {
      token = await takeOver(id);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      signal.throwIfAborted();
    };
    expect(await workOnOperation(brief(), id, long(untilAborted))).toBeNull();
    expect(await eventually(() => outcomeOf(id))).toMatchObject({ outcome: 'lease_lost', step: 'convert' });
    expect(await worker.row(id)).toMatchObject({ status: 'pending', leaseToken: token, lastError: null });
  });
});
