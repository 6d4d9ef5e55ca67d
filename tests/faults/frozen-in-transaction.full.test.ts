import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured, startStack } from './faults.testkit.js';

// Slow, because it waits for PostgreSQL's own limit: 15 s idle in a transaction.
test('PostgreSQL releases the row of a worker that froze inside a transaction, and the thawed worker writes nothing', async () => {
  const stack = await startStack();
  const [api, frozen] = await Promise.all([stack.spawnApi(), stack.spawnWorker({ LEASE_MS: '1500' })]);
  const roomId = await stack.newRoom(api);
  await stack.join(roomId);
  await stack.holding([roomId], async () => {
    await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'respond-async' });
    await eventually(async () => {
      const [row] = await stack.database.prisma.$queryRaw<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.count === 1;
    });
    frozen.freeze();
  });
  const frozenAt = performance.now();
  const other = await stack.spawnWorker({ LEASE_MS: '1500' });
  const operation = await stack.completed(roomId, 40_000);
  measured({ 'ms until another completed it': performance.now() - frozenAt });
  expect(operation).toMatchObject({ status: 'completed', lastError: null });
  // A claim that waits for the row begins its lease before, and may lose it at once.
  expect([2, 3]).toContain(operation.attempts);

  frozen.thaw();
  await frozen.waitForLog((line) => line['operationId'] === operation.id && line['outcome'] === 'lease_lost');
  expect(await stack.operationOf(roomId)).toEqual(operation);
  expect(other.output()).not.toContain('process failed');
});
