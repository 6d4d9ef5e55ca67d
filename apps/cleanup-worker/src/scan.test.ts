import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { claimOperation, findDueOperations } from '@callplane/db';
import { breakRedis, createTestTenant, eventually } from '@callplane/testing';
import { KIND_NAMES, scanOf, startTestWorker, type TestWorker, workOnOperation } from './worker.testkit.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(async () => {
  await worker.deps.producer.redis.flushall();
  await worker.sql('TRUNCATE runtime_operations');
});

/** Removals that have been due for `seconds`, and that nobody has sent a job for. */
async function due(environmentId: string, count: number, seconds = 60): Promise<string[]> {
  const roomId = newId('room');
  await worker.sql(`INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
    VALUES ('${roomId}', '${environmentId}', 'Room', '{}', 'created', 2, now())`);
  await worker.sql(`
    INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
    SELECT '${newId('participant')}' || lpad(n::text, 6, '0'), '${environmentId}', '${roomId}', 'Ada', '{}',
      'participant', now(), now()
    FROM generate_series(1, ${count}) n`);
  await worker.sql(`
    INSERT INTO runtime_operations (id, environment_id, room_id, participant_id, kind, subject_id, status, created_at, due_at)
    SELECT 'op' || substr(id, 5), environment_id, room_id, id, 'participant.remove', id, 'pending', now(),
      now() - interval '${seconds} s' FROM participants WHERE room_id = '${roomId}'`);
  const rows = await worker.deps.database.prisma.runtimeOperation.findMany({
    where: { roomId },
    orderBy: { id: 'asc' },
  });
  return rows.map(({ id }) => id);
}

const found = async (limit = 100) =>
  (await findDueOperations(worker.deps.database.sql, KIND_NAMES, limit)).map(({ id }) => id);
const { signal } = new AbortController();
/** Its first scan is due at once, like all others. */
const scanNow = (work: (operationId: string) => Promise<unknown>) => scanOf(worker.deps, 0, work);

describe('due operations', () => {
  test('are pending, due, and held by no living worker', async () => {
    const [open, later, held, lost, exhausted, completed] = await due(worker.tenant.environmentId, 6);
    const set = (id: string | undefined, change: string) =>
      worker.sql(`UPDATE runtime_operations SET ${change} WHERE id = '${id}'`);
    await set(later, "due_at = now() + interval '1 minute'");
    for (const id of [held, lost]) await claimOperation(worker.deps.database.sql, id!, randomUUID(), 60_000);
    await set(lost, "lease_expires_at = now() - interval '1 second'");
    await set(exhausted, 'attempts = 8, run_attempts = 8');
    await set(completed, "status = 'completed', completed_at = now()");
    expect(new Set(await found())).toEqual(new Set([open, lost]));
    const lateMs = new Map(
      (await findDueOperations(worker.deps.database.sql, KIND_NAMES, 9)).map((row) => [row.id, row.lateMs]),
    );
    expect(lateMs.get(open!)).toBeGreaterThanOrEqual(60_000);
    // It could not begin before its lease was over.
    expect(lateMs.get(lost!)).toBeLessThan(60_000);
  });

  test('come in the turns of their environments', async () => {
    const small = await createTestTenant(worker.deps.database);
    await due(worker.tenant.environmentId, 2000);
    const theirs = await due(small.environmentId, 2, 1);
    const rows = await findDueOperations(worker.deps.database.sql, KIND_NAMES, 10);
    expect(rows.map(({ place }) => place)).toEqual([1, 1, 2, 2, 3, 4, 5, 6, 7, 8]);
    expect(rows.filter(({ environmentId }) => environmentId === small.environmentId).map(({ id }) => id)).toEqual(
      theirs,
    );
  });
});

describe('a scan', () => {
  test('adds the jobs that are missing, once, with the place of a row as its priority', async () => {
    const [first, second] = await due(worker.tenant.environmentId, 2);
    const scan = scanNow(() => Promise.reject(new Error('must not run')));
    const { redis } = worker.deps.producer;
    const prefix = 'callplane:participant-remove';
    for (let scans = 0; scans < 3; scans += 1) await scan.tick(signal);
    await eventually(async () => (await redis.zcard(`${prefix}:prioritized`)) === 1);
    expect(await redis.lrange(`${prefix}:wait`, 0, -1)).toEqual([`${first}_r1_a0`]);
    expect(await redis.zrange(`${prefix}:prioritized`, '0', '-1')).toEqual([`${second}_r1_a0`]);
  });

  test('works on more operations than fit in its page while Redis takes no writes', async () => {
    const ids = await due(worker.tenant.environmentId, 20);
    const repair = await breakRedis(worker.redis, 'read-only');
    try {
      await eventually(() => worker.deps.producer.health.trouble === 'read-only');
      await scanNow((id) => workOnOperation(worker.deps, id)).tick(signal);
      expect(await found()).toEqual([]);
    } finally {
      await repair();
    }
    const rows = await worker.deps.database.prisma.runtimeOperation.findMany({ where: { id: { in: ids } } });
    expect(new Set(rows.map(({ status, attempts }) => `${status} ${attempts}`))).toEqual(new Set(['completed 1']));
    await eventually(() => worker.deps.producer.health.trouble === null);
  });

  test('scans again after PostgreSQL has cut it, and not before its interval is over', async () => {
    const [id] = await due(worker.tenant.environmentId, 1);
    const { sql } = worker.deps.database;
    let cuts = 1;
    const $queryRaw = (...args: Parameters<typeof sql.$queryRaw>) =>
      (cuts -= 1) < 0 ? sql.$queryRaw(...args) : Promise.reject(Object.assign(new Error('cut'), { code: '57014' }));
    const deps = { ...worker.deps, random: () => 0, database: { sql: { $queryRaw } } } as never;
    const scan = scanOf(deps, 60_000, () => Promise.resolve());
    await expect(scan.tick(signal)).rejects.toThrow('cut');
    await scan.tick(signal);
    const job = `callplane:participant-remove:${id}_r1_a0`;
    await eventually(async () => (await worker.deps.producer.redis.exists(job)) === 1);
    await worker.deps.producer.redis.flushall();
    await scan.tick(signal);
    expect(await worker.deps.producer.redis.exists(job)).toBe(0);
  });
});
