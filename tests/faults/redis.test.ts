import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, type TestApp } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});

test('operations that wait complete although Redis is emptied', async () => {
  const api = await stack.spawnApi();
  const rooms = await Promise.all(Array.from({ length: 20 }, () => stack.newRoom(api)));
  for (const roomId of rooms) {
    await stack.join(roomId, 2);
    expect(await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'respond-async' })).toMatchObject({
      status: 202,
    });
  }
  expect(await stack.producer.waitingCount()).toBe(20);
  await stack.producer.redis.flushall();
  await stack.ageWakeUps();
  const worker = await stack.spawnWorker();
  const operations = await Promise.all(rooms.map((roomId) => stack.completed(roomId)));
  expect(new Set(operations.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  await Promise.all([api.stop(), worker.stop()]);
});

describe.each([
  ['off', {}],
  ['on', { RATE_LIMIT_READS_PER_SECOND: '1000', RATE_LIMIT_WRITES_PER_SECOND: '1000' }],
])('with rate limits %s', (_state, limits) => {
  let api: TestApp;
  let worker: TestApp;
  beforeAll(async () => {
    [api, worker] = await Promise.all([stack.spawnApi(limits), stack.spawnWorker()]);
  });
  afterAll(() => Promise.all([api.stop(), worker.stop()]));

  async function serves(): Promise<{ roomId: string; longest: Record<string, number> }> {
    const longest = { GET: 0, POST: 0, DELETE: 0 };
    let roomId = '';
    for (let round = 0; round < 3; round += 1) {
      const created = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
      expect(created.status).toBe(201);
      roomId = String(created.body.id);
      const read = await stack.call(api, 'GET', `/v1/rooms/${roomId}`);
      expect(read.status).toBe(200);
      const ended = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
      expect(ended).toMatchObject({ status: 202, body: { status: 'pending', attempts: 0 } });
      const repeated = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
      expect(repeated).toMatchObject({ status: 202, body: { id: ended.body.id } });
      longest.POST = Math.max(longest.POST, created.ms);
      longest.GET = Math.max(longest.GET, read.ms);
      longest.DELETE = Math.max(longest.DELETE, ended.ms, repeated.ms);
    }
    return { roomId, longest };
  }

  test('a frozen Redis slows no answer beyond a second, and the operation completes once it thaws', async () => {
    await stack.newRoom(api);
    stack.redis.freeze();
    const { roomId, longest } = await serves();
    measured({ ...longest, unit: 'ms at most, Redis frozen' });
    expect(longest['GET']).toBeLessThan(500);
    expect(longest['POST']).toBeLessThan(500);
    expect(longest['DELETE']).toBeLessThan(1000);
    const waiting = await stack.call(api, 'GET', `/v1/rooms/${roomId}/runtime-operation`);
    expect(waiting.body).toMatchObject({ status: 'pending', attempts: 0 });
    stack.redis.thaw();
    const thawedAt = performance.now();
    await stack.completed(roomId);
    measured({ 'ms from thaw to complete': performance.now() - thawedAt });
  });

  test('a Redis that is gone slows none at all, and one that comes back empty is enough', async () => {
    stack.redis.kill('SIGKILL');
    await eventually(() => api.logs.some(({ message }) => message === 'redis connection lost'));
    const { roomId, longest } = await serves();
    measured({ ...longest, unit: 'ms at most, Redis gone' });
    for (const ms of Object.values(longest)) expect(ms).toBeLessThan(500);
    expect(await (await fetch(`${api.url}/readyz`)).json()).toMatchObject({ checks: { redis: 'unavailable' } });
    await stack.redis.start();
    await eventually(() => stack.producer.redis.flushall());
    await stack.ageWakeUps();
    await stack.completed(roomId);
    // Nothing has to be restarted: the fast path works again, notices included.
    await eventually(async () => {
      const fresh = await stack.newRoom(api);
      return (await stack.call(api, 'DELETE', `/v1/rooms/${fresh}`, { prefer: 'wait=5' })).status === 204;
    });
  });
});

test('the API starts while Redis is away and uses it when it comes', async () => {
  await stack.redis.stop();
  const api = await stack.spawnApi();
  const roomId = await stack.newRoom(api);
  expect((await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`)).status).toBe(202);
  await stack.redis.start();
  const worker = await stack.spawnWorker();
  await eventually(async () => {
    const fresh = await stack.newRoom(api);
    return (await stack.call(api, 'DELETE', `/v1/rooms/${fresh}`)).status === 204;
  });
  await stack.ageWakeUps();
  await stack.completed(roomId);
  await Promise.all([api.stop(), worker.stop()]);
});

test('a worker that starts while Redis is frozen works once it answers, although it was asked meanwhile how it is', async () => {
  const api = await stack.spawnApi();
  const roomId = await stack.newRoom(api);
  stack.redis.freeze();
  // Asked 40 times a second until it is ready.
  const starting = stack.spawnWorker();
  try {
    await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
    await Promise.race([starting, delay(4000)]);
  } finally {
    stack.redis.thaw();
  }
  const worker = await starting;
  await stack.ageWakeUps();
  await stack.completed(roomId);
  await Promise.all([api.stop(), worker.stop()]);
}, 60_000);
