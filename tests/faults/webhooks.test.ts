import { beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import { startReceiver, startWebhookStack, type WebhookStack } from './webhooks.testkit.js';

let stack: WebhookStack;
let api: TestApp;
let workers: TestApp[];
beforeAll(async () => {
  stack = await startWebhookStack();
  // The production interval.
  const spawnWorker = () => stack.spawnWebhookWorker({ SWEEP_INTERVAL_MS: '5000' });
  [api, ...workers] = await Promise.all([stack.spawnApi(), spawnWorker(), spawnWorker()]);
});

test('the first retry comes five to six seconds after the first failure', async () => {
  const receiver = await startReceiver();
  receiver.answer = () => (receiver.requests.length === 1 ? 500 : 200);
  const endpointId = await stack.register(api, receiver);
  const roomId = await stack.newRoom(api);
  await eventually(() => receiver.requests.length === 2);
  const [first, second] = receiver.requests;
  const waitedMs = second!.at.getTime() - first!.at.getTime();
  measured({ 'ms from the first failure to its retry': waitedMs });
  expect(waitedMs).toBeGreaterThanOrEqual(5000);
  // Up to 20 % of jitter, plus the duration of the attempt. The rest is for a slow machine.
  expect(waitedMs).toBeLessThan(15_000);
  await stack.allDelivered();
  receiver.check();
  expect(receiver.rooms('room.created')).toEqual(new Map([[roomId, 2]]));

  const path = `/v1/webhooks/${endpointId}/deliveries/${first!.deliveryId}`;
  expect((await stack.call(api, 'GET', path)).body).toMatchObject({ status: 'succeeded', attempts: 2, replayCount: 0 });
  const { body } = await stack.call(api, 'GET', `${path}/attempts`);
  expect(body.data).toMatchObject([
    { attempt: 2, outcome: 'success', statusCode: 200 },
    { attempt: 1, outcome: 'response', statusCode: 500, address: '127.0.0.1' },
  ]);
  const logs = workers.flatMap((worker) => worker.logs);
  expect(logs.filter(({ message }) => message === 'delivery lease expired')).toEqual([]);
});

test('while secrets rotate, each delivery is signed with the secret of the version that it names', async () => {
  const receiver = await startReceiver();
  const endpointId = await stack.register(api, receiver);
  let rotating = true;
  const traffic = Promise.all(
    Array.from({ length: 3 }, async () => {
      while (rotating) await stack.newRoom(api);
    }),
  );
  for (let version = 2; version <= 12; version += 1) {
    const { status, body } = await stack.call(api, 'POST', `/v1/webhooks/${endpointId}/rotate-secret`);
    expect({ status, version: body.signingKeyVersion }).toEqual({ status: 200, version });
    receiver.learn('/hook', version, String(body.signingSecret));
  }
  rotating = false;
  await traffic;
  await stack.allDelivered();
  const versions = new Set(receiver.requests.map(({ version }) => version));
  measured({ versions: versions.size, deliveries: receiver.requests.length });
  expect(versions.size).toBeGreaterThan(2);
  receiver.check();
});
