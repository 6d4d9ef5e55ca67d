import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import { closedGate, startReceiver, startWebhookStack } from './faults/webhooks.testkit.js';

type Counts = Record<string, number>;

/** Starts Bull Board. @returns the numbers of jobs that it shows, by queue. */
async function openDashboard(redisUrl: string): Promise<() => Promise<Record<string, Counts>>> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'dashboard.mjs')], {
    env: { REDIS_URL: redisUrl },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  stopAtEnd(() => {
    child.kill('SIGKILL');
    return Promise.resolve();
  });
  const [address] = (await once(child.stdout, 'data')) as [Buffer];
  return async () => {
    const { queues } = (await (await fetch(`${String(address).trim()}/api/queues`)).json()) as {
      queues: { name: string; counts: Counts }[];
    };
    return Object.fromEntries(queues.map(({ name, counts }) => [name, counts]));
  };
}

test('a dashboard of BullMQ shows an attempt as active while it runs, a retry as delayed, and work without a worker as waiting', async () => {
  const [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const [api] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker()]);
  const dashboard = await openDashboard(stack.redis.url);
  await stack.register(api, receiver);
  const gate = closedGate();
  receiver.answer = () => gate.opened.then(() => 503);

  const room = await stack.newRoom(api);
  await eventually(() => receiver.requests.length === 1);
  const until = performance.now() + 3000;
  setTimeout(gate.open, 3000);
  let looks = 0;
  while (performance.now() < until - 500) {
    expect((await dashboard())['webhook-delivery-slow']).toMatchObject({ active: 1 });
    looks += 1;
  }
  expect(looks).toBeGreaterThan(0);
  await eventually(async () => {
    const shown = Object.values(await dashboard());
    expect(shown.map(({ active }) => active)).toEqual([0, 0, 0, 0]);
    expect(shown.reduce((sum, { delayed = 0 }) => sum + delayed, 0)).toBe(1);
    return true;
  });

  await stack.call(api, 'DELETE', `/v1/rooms/${room}`, { prefer: 'respond-async' });
  await eventually(async () => {
    const { 'room-end': ends } = await dashboard();
    // Each announcement may have a priority.
    expect((ends?.['waiting'] ?? 0) + (ends?.['prioritized'] ?? 0)).toBe(1);
    return true;
  });
});
