import { beforeAll, expect, test } from '@jest/globals';
import { createTestTenant, eventually } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

const ENDS = 10_000;
/** How much later the end of another tenant may complete, in milliseconds. */
const DELAY_MS_MAX = 2000;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});

/** Accepted ends of empty rooms that no job announces. */
async function acceptEnds(): Promise<void> {
  const { sql } = stack.database;
  await sql.$executeRaw`
    INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
    SELECT 'room_' || lpad(n::text, 26, '0'), ${stack.tenant.environmentId}, 'Room', '{}', 'ending', 2, now()
    FROM generate_series(1, ${ENDS}::int) n`;
  await sql.$executeRaw`
    INSERT INTO runtime_operations (id, environment_id, room_id, kind, subject_id, status, created_at)
    SELECT 'op' || substr(id, 5), environment_id, id, 'room.end', id, 'pending', now() FROM rooms WHERE status = 'ending'`;
}

const openEnds = () => stack.database.prisma.runtimeOperation.count({ where: { status: 'pending' } });

test('10,000 ends of one tenant delay the single end of another by less than 2 s', async () => {
  const [api, other] = [await stack.spawnApi(), await createTestTenant(stack.database)];
  const worker = await stack.spawnWorker({ SWEEP_INTERVAL_MS: '5000' });
  const endOne = async (): Promise<number> => {
    const { key } = other;
    const created = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' }, key });
    const startedAt = performance.now();
    const path = `/v1/rooms/${String(created.body.id)}`;
    const ended = await stack.call(api, 'DELETE', path, { prefer: 'wait=30', key });
    expect(ended.status).toBe(204);
    return performance.now() - startedAt;
  };
  const aloneMs = await endOne();
  await acceptEnds();
  await eventually(async () => (await openEnds()) < ENDS);
  const besideMs: number[] = [];
  while (besideMs.length < 100) {
    besideMs.push(await endOne());
    // They are still waiting: otherwise this end had nothing beside it.
    expect(await openEnds()).toBeGreaterThan(100);
  }
  measured({ 'ms alone': aloneMs, 'ms beside them at most': Math.max(...besideMs), 'still open': await openEnds() });
  expect(Math.max(...besideMs) - aloneMs).toBeLessThan(DELAY_MS_MAX);
  await Promise.all([api.stop(), worker.stop()]);
});
