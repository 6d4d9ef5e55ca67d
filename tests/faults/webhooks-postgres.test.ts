import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, startTestPostgres, type TestApp, type TestPostgres } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import {
  closedGate,
  deliveriesIn,
  startReceiver,
  startWebhookStack,
  type Receiver,
  type WebhookStack,
} from './webhooks.testkit.js';

let postgres: TestPostgres;
let stack: WebhookStack;
let api: TestApp;
let workers: TestApp[];
let receiver: Receiver;
beforeAll(async () => {
  postgres = await startTestPostgres();
  [stack, receiver] = await Promise.all([startWebhookStack((await postgres.createDatabase()).url), startReceiver()]);
  const env = { LEASE_MS: '6000' };
  [api, ...workers] = await Promise.all([
    stack.spawnApi(),
    stack.spawnWebhookWorker(env),
    stack.spawnWebhookWorker(env),
  ]);
  await stack.register(api, receiver);
});
afterEach(() => {
  receiver.answer = () => 200;
  receiver.check();
});

/** Creates rooms and delivers their events while `fault` happens. */
async function survives(fault: () => Promise<void>): Promise<void> {
  const known = receiver.requests.length;
  const accepted: string[] = [];
  let refused = 0;
  let stopped = false;
  const callers = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!stopped) {
        const { status, body } = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
        if (status === 201) accepted.push(String(body.id));
        else refused += 1;
      }
    }),
  );
  callers.catch(() => undefined);
  let backMs: number;
  try {
    await eventually(() => receiver.requests.length > known + 20);
    await fault();
    const since = receiver.requests.length;
    const backAt = performance.now();
    await eventually(() => receiver.requests.length > since + 20);
    backMs = performance.now() - backAt;
  } finally {
    stopped = true;
    await callers;
  }
  await eventually(async () => {
    await stack.allDelivered(1000);
    return true;
  });

  const rooms = await stack.database.prisma.room.findMany({ select: { id: true } });
  const arrived = receiver.rooms('room.created');
  expect(rooms.map(({ id }) => id)).toEqual(expect.arrayContaining(accepted));
  expect([...arrived.keys()].sort()).toEqual(rooms.map(({ id }) => id).sort());
  const again = [...receiver.counts()].filter(([, count]) => count > 1).map(([id]) => id);
  // An event may arrive twice only if a worker could not settle its delivery or the crash undid the claim. The worker
  // may log the lost lease a moment later.
  const lost = await eventually(async () => {
    const expired = (await stack.leasesLost()).keys();
    const late = deliveriesIn(...workers).filter((line) => line['status'] === 'lease_lost');
    const ids = new Set([...expired, ...late.map((line) => String(line['eventId']))]);
    expect(again.filter((id) => !ids.has(id))).toEqual([]);
    return ids;
  });
  measured({
    accepted: accepted.length,
    refused,
    'ms until 20 more arrive': backMs,
    'sent again': again.length,
    'leases lost': lost.size,
  });
  const ready = await Promise.all(
    [api.url, ...workers.map(({ healthUrl }) => healthUrl)].map((url) => fetch(`${url}/readyz`)),
  );
  expect(ready.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const app of [api, ...workers]) expect(app.output()).not.toContain('process failed');
}

/**
 * Runs `fault` while requests are in flight, which are answered while PostgreSQL is down. After a second without an
 * answer the endpoint leaves the fast lane and fills no further slots, so a busy machine may not fill all eight.
 */
async function answeredMeanwhile(fault: () => void): Promise<void> {
  const gate = closedGate();
  let held = 0;
  receiver.answer = () => {
    held += 1;
    return gate.opened.then(() => 200);
  };
  await eventually(() => held >= 2);
  fault();
  // When the API has lost its database, the workers have lost theirs as well.
  await eventually(async () => (await fetch(`${api.url}/readyz`)).status === 503);
  receiver.answer = () => 200;
  gate.open();
}

test('a restart of PostgreSQL during deliveries loses none', async () => {
  await survives(async () => {
    await answeredMeanwhile(() => postgres.kill('SIGINT'));
    await postgres.restart();
  });
});

test('a crash of PostgreSQL during deliveries loses none', async () => {
  await survives(async () => {
    await answeredMeanwhile(() => postgres.kill('SIGKILL'));
    // The child processes exit a moment later and hold the lock on the data directory until then.
    await eventually(() => postgres.restart().then(() => true), { intervalMs: 200 });
  });
});
