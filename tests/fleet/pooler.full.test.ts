import { expect, test } from '@jest/globals';
import {
  createTestDatabase,
  eventually,
  gatewayUrlOf,
  startTestNginx,
  startTestPgBouncer,
  stopAtEnd,
  type TestApp,
} from '@callplane/testing';
import { startReceiver, startWebhookStack } from '../faults/webhooks.testkit.js';
import { Load } from './load.testkit.js';

const ROOMS = 12;
const portOf = (app: TestApp) => Number(new URL(app.url).port);

test('rooms, joins, operations and deliveries go through PgBouncer in transaction mode', async () => {
  const { url } = await createTestDatabase();
  const [{ throughPooler }, receiver] = await Promise.all([startTestPgBouncer(url), startReceiver()]);
  const pooled = throughPooler(url);
  // The database of the test itself takes the direct way.
  const stack = await startWebhookStack(url);
  const env = { DATABASE_URL: pooled, DATABASE_POOLER: 'transaction' };
  const [api, gateway] = await Promise.all([
    stack.spawnApi(env),
    stack.spawnSignaling({ ...env, DATABASE_URL: gatewayUrlOf(pooled) }),
    stack.spawnWorker(env),
    stack.spawnWebhookWorker(env),
  ]);
  await stack.register(api, receiver);
  const nginx = await startTestNginx({ api: [portOf(api)], signaling: [portOf(gateway)] });
  const load = new Load({ url: nginx.url, key: stack.tenant.key });
  stopAtEnd(() => load.close());
  const running = load.start(3);
  await eventually(() => load.rooms.length >= ROOMS, { timeoutMs: 240_000 });
  load.stop();
  await running;
  expect(load.failures).toEqual([]);
  expect([...load.statuses.keys()].filter((status) => status >= 300)).toEqual([]);
  await stack.allCompleted(load.rooms);
  await stack.allDelivered();
  expect([...receiver.rooms('room.ended').keys()].sort()).toEqual([...load.rooms].sort());
});
