import { beforeAll, expect, test } from '@jest/globals';
import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import { eventually, type TestApp } from '@callplane/testing';
import { attemptsIn, measured, startStack, type Answer, type Stack } from './faults.testkit.js';

let stack: Stack;
let api: TestApp;
let worker: TestApp;
beforeAll(async () => {
  stack = await startStack();
  [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWorker()]);
});

const leasesHeld = async () => {
  const [row] = await stack.database.prisma.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM runtime_operations WHERE lease_expires_at > now()`;
  return row?.count ?? 0;
};

test('300 concurrent DELETEs complete, and the worker never holds more than four leases over both of its queues', async () => {
  const rooms = await Promise.all(Array.from({ length: 300 }, () => stack.newRoom(api)));
  const crowded = rooms.slice(0, 40);
  const people: { roomId: string; participantId: string }[] = [];
  for (const roomId of crowded) {
    const [participantId] = await stack.join(roomId, 2);
    people.push({ roomId, participantId: participantId! });
  }
  const before = attemptsIn(worker).length;
  let most = 0;
  let refusals = 0;
  /**
   * Retries as a client does: on a slow machine, the API may refuse requests for a moment while all connections are in
   * use.
   */
  const insist = async (path: string): Promise<Answer> => {
    const answer = await stack.call(api, 'DELETE', path);
    if (answer.status !== 503) return answer;
    refusals += 1;
    await new Promise((resolve) => setTimeout(resolve, Number(answer.headers.get('retry-after')) * 1000));
    return insist(path);
  };
  const sampled = new AbortController();
  const startedAt = performance.now();
  const sampling = (async () => {
    while (!sampled.signal.aborted) most = Math.max(most, await leasesHeld());
  })();
  try {
    await stack.holding(crowded, async () => {
      // The room ends of held rooms come first and occupy every slot.
      const first = await Promise.all(
        crowded.map((roomId) => stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'respond-async' })),
      );
      expect(new Set(first.map(({ status }) => status))).toEqual(new Set([202]));
      await eventually(async () => (await leasesHeld()) === CONCURRENCY_PER_WORKER);
    });
    const answers = await Promise.all([
      ...rooms.slice(40).map((roomId) => insist(`/v1/rooms/${roomId}`)),
      ...people.map(({ roomId, participantId }) => insist(`/v1/rooms/${roomId}/participants/${participantId}`)),
    ]);
    measured({ 'slowest ms of 300': Math.max(...answers.map(({ ms }) => ms)), 'refused with 503': refusals });
    expect(answers.filter(({ status }) => status !== 202 && status !== 204)).toEqual([]);
    await eventually(
      async () => (await stack.database.prisma.runtimeOperation.count({ where: { status: 'pending' } })) === 0,
    );
  } finally {
    sampled.abort();
    await sampling;
  }
  expect(most).toBe(CONCURRENCY_PER_WORKER);
  expect(attemptsIn(worker).length - before).toBe(340);
  expect(await stack.database.prisma.runtimeOperation.count({ where: { attempts: { gt: 1 } } })).toBe(0);
  measured({ 'ms for 340 operations': performance.now() - startedAt, 'leases at most': most });
});
