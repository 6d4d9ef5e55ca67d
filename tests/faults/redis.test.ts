import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptRoomEnd } from '@callplane/db';
import { breakRedis, eventually, REDIS_FAULTS, type TestApp } from '@callplane/testing';
import { attemptsIn, measured, startStack, type Stack } from './faults.testkit.js';

/**
 * Commands to Redis have deadlines below a second. A request without one would hang as long as the fault lasts. The rest
 * is for a slow machine.
 */
const RESPONSE_MS_MAX = 10_000;
/** Rooms that end during a fault: several times as many as a worker completes at once. */
const ROOMS = 40;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});

test('pending operations complete although Redis is emptied', async () => {
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
  const worker = await stack.spawnWorker();
  const operations = await stack.allCompleted(rooms);
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
      expect(ended).toMatchObject({ status: 202, body: { status: 'pending' } });
      // A worker may have completed the operation between the two requests.
      const repeated = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
      expect([202, 204]).toContain(repeated.status);
      longest.POST = Math.max(longest.POST, created.ms);
      longest.GET = Math.max(longest.GET, read.ms);
      longest.DELETE = Math.max(longest.DELETE, ended.ms, repeated.ms);
    }
    return { roomId, longest };
  }

  test('a frozen Redis delays no response beyond the deadlines of its commands, and the operation completes meanwhile', async () => {
    await stack.newRoom(api);
    stack.redis.freeze();
    try {
      const { roomId, longest } = await serves();
      measured({ ...longest, unit: 'ms at most, Redis frozen' });
      for (const ms of Object.values(longest)) expect(ms).toBeLessThan(RESPONSE_MS_MAX);
      await stack.completed(roomId);
    } finally {
      stack.redis.thaw();
    }
  });

  test('a dead Redis delays no response, and the fast path works again when an empty Redis returns', async () => {
    stack.redis.kill('SIGKILL');
    await eventually(() => api.logs.some(({ message }) => message === 'redis connection lost'));
    const { roomId, longest } = await serves();
    measured({ ...longest, unit: 'ms at most, Redis unreachable' });
    for (const ms of Object.values(longest)) expect(ms).toBeLessThan(RESPONSE_MS_MAX);
    await eventually(async () => {
      expect(await (await fetch(`${api.url}/readyz`)).json()).toMatchObject({ checks: { redis: 'unreachable' } });
      return true;
    });
    // The operation completes during the outage, not only after it.
    await stack.completed(roomId);
    await stack.redis.start();
    await eventually(() => stack.producer.redis.flushall());
    // The fast path works again without a restart, notices included.
    await eventually(async () => {
      const fresh = await stack.newRoom(api);
      return (await stack.call(api, 'DELETE', `/v1/rooms/${fresh}`, { prefer: 'wait=5' })).status === 204;
    });
  });
});

test('the API starts without Redis and uses it once it is available', async () => {
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
  await stack.completed(roomId);
  await Promise.all([api.stop(), worker.stop()]);
});

describe('while Redis is', () => {
  let api: TestApp;
  let worker: TestApp;
  beforeAll(async () => {
    [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWorker()]);
  });
  afterAll(() => Promise.all([api.stop(), worker.stop()]));

  const end = async (rooms: readonly string[], isSent: boolean): Promise<number> => {
    const startedAt = performance.now();
    const accepted = await Promise.all(
      rooms.map((roomId) => acceptRoomEnd(stack.database, stack.tenant, roomId, new Date())),
    );
    if (isSent) await stack.producer.wakeOperations(accepted.map((each) => each!.wake!));
    await stack.allCompleted(rooms);
    return performance.now() - startedAt;
  };

  test.each(REDIS_FAULTS)(
    '%s, cleanups continue, apps are ready and report why they are degraded, and afterwards no work is repeated',
    async (fault) => {
      await eventually(() => stack.producer.redis.status === 'ready' && stack.producer.health.trouble === null);
      const [usual, meanwhile] = [await stack.seedRooms(ROOMS), await stack.seedRooms(ROOMS)];
      const usualMs = await end(usual, true);
      const repair = await breakRedis(stack.redis, fault);
      let ms;
      try {
        const states = await eventually(async () => {
          const bodies = await Promise.all(
            [api.url, worker.healthUrl].map(async (url) => {
              const response = await fetch(`${url}/readyz`);
              return { ready: response.status, body: await response.json() };
            }),
          );
          const namesFault = ({ body }: { body: unknown }) =>
            (body as { checks?: { redis?: string } }).checks?.redis === fault;
          return bodies.every(namesFault) ? bodies : null;
        });
        for (const state of states) expect(state).toMatchObject({ ready: 200, body: { status: 'degraded' } });
        const single = await stack.newRoom(api);
        const deleted = await stack.call(api, 'DELETE', `/v1/rooms/${single}`);
        expect(deleted.status).toBe(202);
        expect(deleted.ms).toBeLessThan(RESPONSE_MS_MAX);
        await stack.completed(single);
        ms = await end(meanwhile, false);
      } finally {
        await repair();
      }
      // The first row waits for the next eager scan, at most a second; throughput determines the rest.
      measured({ [`ms for ${ROOMS} rooms`]: ms, 'ms usually': usualMs, fault });
      expect(ms).toBeLessThan(15_000 + 3 * usualMs);
      // Jobs and notices arrive again without a restart.
      await eventually(async () => {
        const fresh = await stack.newRoom(api);
        return (await stack.call(api, 'DELETE', `/v1/rooms/${fresh}`, { prefer: 'wait=5' })).status === 204;
      });
      const attempts = attemptsIn(worker).map(({ operationId }) => operationId);
      expect(new Set(attempts).size).toBe(attempts.length);
    },
  );
});

test.each(REDIS_FAULTS)('apps start while Redis is %s, and a worker completes due operations', async (fault) => {
  const repair = await breakRedis(stack.redis, fault);
  try {
    const api = await stack.spawnApi();
    const roomId = await stack.newRoom(api);
    expect((await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`)).status).toBe(202);
    const worker = await stack.spawnWorker();
    await stack.completed(roomId);
    await Promise.all([api.stop(), worker.stop()]);
  } finally {
    await repair();
  }
});
