import { connect } from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});

test('SIGTERM loses no request under load, refuses new connections, and exits with 0', async () => {
  const [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWorker()]);
  const statuses = new Map<number, number>();
  const errors: string[] = [];
  let closing = false;
  const callers = Array.from({ length: 16 }, async (_, n) => {
    for (;;) {
      try {
        const roomId = n % 2 === 0 ? null : await stack.newRoom(api);
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
  // Every caller stopped because its connection was refused, none because its request was cut off.
  expect(new Set(errors)).toEqual(new Set(['ECONNREFUSED']));
  // A few seconds on an idle machine; the drain deadline is far longer.
  expect(drainMs).toBeLessThan(12_000);
  await worker.stop();
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
