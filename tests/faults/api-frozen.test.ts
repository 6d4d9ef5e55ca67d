import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured, startStack } from './faults.testkit.js';

/** Longer than a request may wait for a connection, shorter than PostgreSQL's limit for an idle transaction. */
const FROZEN_MS = 4000;
const CONNECTIONS = 2;

test('a thawed API answers with what PostgreSQL has done meanwhile, and refuses with 503 what has not begun', async () => {
  const stack = await startStack();
  const api = await stack.spawnApi({ DATABASE_POOL_MAX: String(CONNECTIONS) });
  const [first, again] = [await stack.newRoom(api), await stack.newRoom(api)];
  const { prisma } = stack.database;
  const countOf = async (counted: Promise<{ count: number }[]>) => (await counted)[0]?.count;
  const waitsForLock = () =>
    countOf(prisma.$queryRaw`
      SELECT count(*)::int FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`);
  const isUnderWay = () =>
    countOf(prisma.$queryRaw`
      SELECT count(*)::int FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`);

  const waiting = await stack.database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM rooms WHERE id IN (${first}, ${again}) FOR UPDATE`;
    // A single statement, and a statement within a transaction.
    const answered = [
      stack.call(api, 'DELETE', `/v1/rooms/${first}`, { prefer: 'respond-async' }),
      stack.call(api, 'PATCH', `/v1/rooms/${again}`, { body: { name: 'Renamed' } }),
    ];
    await eventually(async () => (await waitsForLock()) === CONNECTIONS);
    for (let round = 0; round < 3; round += 1) {
      answered.push(
        stack.call(api, 'GET', `/v1/rooms/${first}`),
        stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } }),
        stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' }, idempotencyKey: `round ${round}` }),
      );
    }
    // Reads have connections of their own. Rooms without a key share a statement, so not each of them waits for one.
    await eventually(async () => {
      const metrics = await (await fetch(api.metricsUrl)).text();
      const [, waits] = /^callplane_database_connections\{state="waiting",app="api"\} (\d+)$/m.exec(metrics) ?? [];
      return Number(waits) > 3;
    });
    api.freeze();
    return answered;
  });
  const frozenAt = performance.now();
  await eventually(async () => (await isUnderWay()) === 0);
  await delay(FROZEN_MS - (performance.now() - frozenAt));
  api.thaw();

  const answers = await Promise.all(waiting);
  measured({ 'slowest ms': Math.max(...answers.map(({ ms }) => ms)) });
  const [deleted, renamed, ...others] = answers.map(({ status }) => status);
  expect([deleted, renamed]).toEqual([202, 200]);
  for (const status of others) expect([200, 201, 503]).toContain(status);
  expect(await prisma.room.count()).toBe(2 + others.filter((status) => status === 201).length);
  const repeated = () => stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' }, idempotencyKey: 'round 0' });
  await eventually(async () => (await repeated()).status === 201);
});
