import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured, startStack } from './faults.testkit.js';

test('a draining API answers a waiting DELETE before its wait ends', async () => {
  const stack = await startStack();
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
