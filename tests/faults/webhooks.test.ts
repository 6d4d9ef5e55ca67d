import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from './webhooks.testkit.js';

let stack: WebhookStack;
let api: TestApp;
let receiver: Receiver;
let endpointId: string;
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  [api] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker(), stack.spawnWebhookWorker()]);
  endpointId = await stack.register(api, receiver);
});
afterEach(() => receiver.check());

test('a replay and new rooms that race the removal of their endpoint leave no open delivery', async () => {
  const outcomes: Record<string, number> = {};
  for (let round = 0; round < 10; round += 1) {
    const name = `removed-${round}`;
    const id = await stack.register(api, receiver, name);
    const { body: tested } = await stack.call(api, 'POST', `/v1/webhooks/${id}/test`);
    const path = `/v1/webhooks/${id}/deliveries/${String(tested.id)}`;
    await eventually(async () => (await stack.call(api, 'GET', path)).body.status === 'succeeded');
    const [replayed, removed] = await Promise.all([
      stack.call(api, 'POST', `${path}/replay`, { body: { expectedReplayCount: 0 } }),
      stack.call(api, 'DELETE', `/v1/webhooks/${id}`),
      ...Array.from({ length: 6 }, () => stack.newRoom(api)),
    ]);
    expect(removed.status).toBe(204);
    expect([202, 404]).toContain(replayed.status);
    await eventually(async () => {
      const open = await stack.database.prisma.webhookDelivery.findMany({
        where: { endpointId: id, status: { in: ['pending', 'delivering'] } },
      });
      expect(open).toEqual([]);
      return true;
    });
    const { body: delivery } = await stack.call(api, 'GET', path);
    const after = [delivery.status, delivery.failureReason, delivery.replayCount].join(' ');
    expect(replayed.status === 202 ? ['succeeded  1', 'failed endpoint_deleted 1'] : ['succeeded  0']).toContain(after);
    outcomes[`${replayed.status} ${after}`] = (outcomes[`${replayed.status} ${after}`] ?? 0) + 1;
  }
  measured({ outcomes: JSON.stringify(outcomes) });
});

test('while secrets rotate, each delivery is signed with the secret of the version that it names', async () => {
  const known = receiver.requests.length;
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
  const versions = new Set(receiver.requests.slice(known).map(({ version }) => version));
  measured({ versions: versions.size, deliveries: receiver.requests.length - known });
  expect(versions.size).toBeGreaterThan(2);
});
