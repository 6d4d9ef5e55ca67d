import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured, startStack } from './faults.testkit.js';

test('an operation whose API died between commit and wake-up completes within 15 s of being due', async () => {
  const stack = await startStack();
  const [api] = await Promise.all([
    stack.spawnApi(),
    // The production interval, because the test checks the promised bound.
    stack.spawnWorker({ SWEEP_INTERVAL_MS: '5000' }),
  ]);
  const roomId = await stack.newRoom(api);
  await stack.join(roomId);

  // The frozen Redis accepts no job: the request hangs after its commit, where the API is killed.
  stack.redis.freeze();
  const answer = stack.call(api, 'DELETE', `/v1/rooms/${roomId}`).then(
    ({ status }) => status,
    () => 'no answer',
  );
  await eventually(() => stack.operationOf(roomId), { intervalMs: 2 });
  api.kill('SIGKILL');
  expect(await answer).toBe('no answer');
  // Discards what the dead API wrote into the socket of this Redis.
  stack.redis.kill('SIGKILL');
  await stack.redis.start();

  const operation = await stack.completed(roomId);
  const lateMs = operation.completedAt!.getTime() - operation.dueAt.getTime();
  measured({ 'ms from due to complete': lateMs });
  expect(operation).toMatchObject({ attempts: 1 });
  expect(lateMs).toBeLessThan(15_000);
});
