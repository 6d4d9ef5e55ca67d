import { connect } from 'node:net';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

let stack: Stack;
/** Takes the operations of the first test. The second one needs operations that wait. */
let worker: TestApp | undefined;
beforeAll(async () => {
  stack = await startStack();
});
afterEach(() => worker?.stop());

test('SIGTERM loses no request under load, refuses new connections, and exits with 0', async () => {
  worker = await stack.spawnWorker();
  const api = await stack.spawnApi();
  const statuses = new Map<number, number>();
  const errors: string[] = [];
  let roomsMade = 0;
  let closing = false;
  const callers = Array.from({ length: 16 }, async (_, n) => {
    for (;;) {
      try {
        const roomId = n % 2 === 0 ? null : await stack.newRoom(api);
        if (roomId !== null) roomsMade += 1;
        const { status } =
          roomId === null
            ? await stack.call(api, 'GET', '/v1/rooms?limit=5')
            : await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      } catch (error) {
        const { cause } = error as { cause?: { code?: string } };
        errors.push(cause?.code ?? String(error));
        if (closing) return;
      }
    }
  });
  try {
    await eventually(() => errors.length > 0 || [...statuses.values()].reduce((sum, count) => sum + count, 0) > 200);
  } finally {
    closing = true;
  }
  expect(errors).toEqual([]);
  const startedAt = performance.now();
  api.kill('SIGTERM');
  expect(await api.exited).toEqual({ code: 0, signal: null });
  const drainMs = performance.now() - startedAt;
  await Promise.all(callers);
  measured({ 'ms to drain': drainMs, answers: JSON.stringify([...statuses]), errors: JSON.stringify(errors) });
  expect([...statuses.keys()].filter((status) => status < 200 || status > 299)).toEqual([]);
  // No request was cut off: each one that the API began to work on has its answer. A caller that pauses for longer than
  // the API keeps idle connections may find its connection closed before the API has read the request.
  const begun = api.logs.filter(({ message }) => message === 'request');
  expect(begun.filter(({ aborted }) => aborted === true)).toEqual([]);
  expect(begun).toHaveLength([...statuses.values()].reduce((sum, count) => sum + count, roomsMade));
  expect(errors.filter((error) => !['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET'].includes(error))).toEqual([]);
  // A few seconds on an idle machine; the drain deadline is far longer.
  expect(drainMs).toBeLessThan(12_000);
});

test('a draining API answers a waiting DELETE before its wait ends', async () => {
  const api = await stack.spawnApi();
  const roomId = await stack.newRoom(api);
  const waiting = stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'wait=10' });
  await eventually(async () => (await stack.producer.waitingCount()) > 0);
  const startedAt = performance.now();
  api.kill('SIGTERM');
  const answer = await waiting;
  measured({ 'ms to the answer': performance.now() - startedAt });
  expect(answer).toMatchObject({ status: 202, body: { status: 'pending' } });
  expect(performance.now() - startedAt).toBeLessThan(8000);
  expect(await api.exited).toEqual({ code: 0, signal: null });
  await expect(
    new Promise((resolve, reject) => {
      connect(Number(new URL(api.url).port), '127.0.0.1')
        .once('connect', resolve)
        .once('error', reject);
    }),
  ).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
