import { Queue } from 'bullmq';
import { expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import { closedGate, startReceiver, startWebhookStack } from './faults/webhooks.testkit.js';

const QUEUES = ['room-end', 'participant-remove', 'webhook-delivery', 'webhook-delivery-slow'];

test('a dashboard of BullMQ shows an attempt as active while it runs, a retry as delayed, and work without a worker as waiting', async () => {
  const [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const [api] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker()]);
  const queues = QUEUES.map((name) => new Queue(name, { connection: { url: stack.redis.url }, prefix: 'callplane' }));
  stopAtEnd(() => Promise.all(queues.map((queue) => queue.close())));
  const counts = async (): Promise<Record<string, Record<string, number>>> =>
    Object.fromEntries(await Promise.all(queues.map(async (queue) => [queue.name, await queue.getJobCounts()])));
  await stack.register(api, receiver);
  const gate = closedGate();
  receiver.answer = () => gate.opened.then(() => 503);

  const room = await stack.newRoom(api);
  await eventually(() => receiver.requests.length === 1);
  expect((await counts())['webhook-delivery-slow']).toMatchObject({ active: 1 });
  gate.open();
  await eventually(async () => {
    const shown = Object.values(await counts());
    expect(shown.map(({ active }) => active)).toEqual([0, 0, 0, 0]);
    expect(shown.reduce((sum, { delayed = 0 }) => sum + delayed, 0)).toBe(1);
    return true;
  });

  await stack.call(api, 'DELETE', `/v1/rooms/${room}`, { prefer: 'respond-async' });
  await eventually(async () => {
    const { 'room-end': ends } = await counts();
    // Each announcement may have a priority.
    expect((ends?.['waiting'] ?? 0) + (ends?.['prioritized'] ?? 0)).toBe(1);
    return true;
  });
});
