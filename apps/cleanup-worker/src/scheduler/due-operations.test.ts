import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { claimOperation, forgetWakeUps, takeDueOperations } from '@callplane/db';
import { createTestTenant } from '@callplane/testing';
import { startTestWorker, type TestWorker } from '../worker.testkit.js';

const SCAN = { quietMs: 8000, perEnvironment: 16, limit: 64, after: null };

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() => worker.sql('TRUNCATE runtime_operations'));

/** Rows that are due and had their last wake-up a minute ago. */
async function due(environmentId: string, count: number): Promise<void> {
  const roomId = newId('room');
  await worker.sql(`INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
    VALUES ('${roomId}', '${environmentId}', 'Room', '{}', 'created', 2, now())`);
  await worker.sql(`
    INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
    SELECT '${newId('participant')}' || n, '${environmentId}', '${roomId}', 'Ada', '{}', 'participant', now(), now()
    FROM generate_series(1, ${count}) n`);
  await worker.sql(`
    INSERT INTO runtime_operations
      (id, environment_id, room_id, participant_id, kind, status, created_at, due_at, woken_at)
    SELECT 'op' || substr(id, 5), environment_id, room_id, id, 'participant.remove', 'pending', now(),
      now() - interval '1 minute', now() - interval '1 minute'
    FROM participants WHERE room_id = '${roomId}'`);
}
const rows = () => worker.deps.database.prisma.runtimeOperation.findMany({ orderBy: { id: 'asc' } });
const take = (more: Partial<typeof SCAN> = {}) => takeDueOperations(worker.deps.database.sql, { ...SCAN, ...more });

describe('a scan for due operations', () => {
  test('takes each due row once while several scans run concurrently', async () => {
    await due(worker.tenant.environmentId, 40);
    const taken = await Promise.all(Array.from({ length: 6 }, () => take({ perEnvironment: 40 })));
    const ids = taken.flatMap((scan) => scan.rows.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
    // A scan skips rows that another one has locked; the next scan finds the remaining ones.
    const rest = (await take({ perEnvironment: 40 })).rows.map(({ id }) => id);
    expect(new Set([...ids, ...rest]).size).toBe(40);
    expect((await take({ perEnvironment: 40 })).rows).toEqual([]);
  });

  test('skips rows that were woken recently, are not due, are leased, or are settled', async () => {
    await due(worker.tenant.environmentId, 5);
    const [lately, later, held, completed, failed] = (await rows()).map(({ id }) => id);
    await worker.sql(`UPDATE runtime_operations SET woken_at = now() - interval '3 s' WHERE id = '${lately}'`);
    await worker.sql(`UPDATE runtime_operations SET due_at = now() + interval '1 s' WHERE id = '${later}'`);
    await claimOperation(worker.deps.database.sql, held!, randomUUID(), 60_000);
    await worker.sql(
      `UPDATE runtime_operations SET status = 'completed', completed_at = now() WHERE id = '${completed}'`,
    );
    await worker.sql(`UPDATE runtime_operations SET status = 'failed' WHERE id = '${failed}'`);
    const before = await rows();
    expect((await take()).rows).toEqual([]);
    expect(await rows()).toEqual(before);
    expect((await take({ quietMs: 500 })).rows.map(({ id }) => id)).toEqual([lately]);
  });

  test('takes a row whose worker died as soon as its lease has expired', async () => {
    await due(worker.tenant.environmentId, 1);
    const [row] = await rows();
    await claimOperation(worker.deps.database.sql, row!.id, randomUUID(), 60_000);
    expect((await take()).rows).toEqual([]);
    await worker.sql("UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second'");
    expect((await take()).rows.map(({ id }) => id)).toEqual([row!.id]);
  });

  test('takes the first row of every environment before the second of any, and at most 16 rows of each', async () => {
    const small = await createTestTenant(worker.deps.database);
    await due(worker.tenant.environmentId, 2000);
    await due(small.environmentId, 1);
    // Due later than all rows of the other environment.
    await worker.sql(
      `UPDATE runtime_operations SET due_at = now() - interval '10 s' WHERE environment_id = '${small.environmentId}'`,
    );
    const two = (await take({ limit: 2 })).rows.map(({ environmentId }) => environmentId);
    expect(new Set(two)).toEqual(new Set([worker.tenant.environmentId, small.environmentId]));
    const many = (await take()).rows.map(({ environmentId }) => environmentId);
    expect(many.filter((id) => id === worker.tenant.environmentId)).toHaveLength(16);
  });

  test('takes released rows although they were woken recently', async () => {
    await due(worker.tenant.environmentId, 2);
    const [first] = (await take()).rows;
    await forgetWakeUps(worker.deps.database.sql, [first!.id]);
    expect((await take()).rows.map(({ id }) => id)).toEqual([first!.id]);
  });

  test('reads the rows of one environment through its index, not through the backlog of another', async () => {
    const small = await createTestTenant(worker.deps.database);
    await due(worker.tenant.environmentId, 5000);
    await due(small.environmentId, 1);
    await worker.sql('ANALYZE runtime_operations');
    const plan = await worker.deps.database.transaction(async (tx) => {
      await tx.$executeRawUnsafe('SET LOCAL enable_seqscan = off');
      return tx.$queryRawUnsafe<{ 'QUERY PLAN': string }[]>(`
        EXPLAIN SELECT id FROM runtime_operations
        WHERE environment_id = '${small.environmentId}' AND status = 'pending' AND due_at <= now()
        ORDER BY due_at LIMIT 16`);
    });
    expect(JSON.stringify(plan)).toContain('runtime_operations_environment_due_idx');
  });
});
