import { freePort } from '@callplane/local-servers';
import { Database } from '@callplane/db';
import { createTestDatabase, createTestTenant, spawnApp, startTestRedis, type TestApp } from '@callplane/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startNginx, type TestNginx } from './nginx.testkit.js';

/** Upgrading the API behind the load balancer: instances are replaced one after the other under load. */

let database: Database;
let env: Record<string, string>;
let key: string;
let ports: number[];
let apis: TestApp[];
let nginx: TestNginx;

beforeAll(async () => {
  const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  database = new Database({ url: target.url, poolMax: 2 });
  key = (await createTestTenant(database)).key;
  env = {
    ...{ DATABASE_URL: target.url, REDIS_URL: redis.url, TRUST_PROXY: '127.0.0.1', DRAIN_IDLE_MS: '5000' },
    ...{ RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0' },
  };
  ports = [await freePort(), await freePort()];
  apis = await Promise.all(ports.map(startApi));
  nginx = await startNginx({ api: ports, signaling: [] });
});
afterAll(() => database.close());

test('no request fails while each API is replaced in turn', async () => {
  const load = keepCalling();
  for (const [index, port] of ports.entries()) {
    await load.atLeast(100);
    await apis[index]!.stop();
    await load.atLeast(100);
    apis[index] = await startApi(port);
    // The next one goes only when this one serves again.
    await apis[index].waitForLog(({ route }) => route === '/v1/rooms');
  }
  await load.atLeast(100);
  const { statuses, created } = await load.stop();
  expect(Object.keys(statuses).sort()).toEqual(['200', '201']);
  // What was answered 201 is there, once.
  expect(await database.prisma.room.count()).toBe(created);
});

test('the instances see the caller, and what a caller claims of itself is not believed', async () => {
  const response = await fetch(`${nginx.url}/v1/`, {
    headers: { authorization: `Bearer ${key}`, 'x-forwarded-for': '203.0.113.9', 'x-request-id': 'seen-by-the-api' },
  });
  expect(response.status).toBe(200);
  const line = await Promise.any(apis.map((api) => api.waitForLog(({ requestId }) => requestId === 'seen-by-the-api')));
  expect(JSON.stringify(line)).not.toContain('203.0.113.9');
  expect(nginx.output()).toContain('"requestId":"seen-by-the-api"');
  expect(nginx.output()).not.toContain(key);
});

test('health and metrics of the instances are not for the world', async () => {
  for (const path of ['/livez', '/readyz', '/metrics']) {
    expect((await fetch(`${nginx.url}${path}`)).status).toBe(404);
  }
});

function startApi(port: number): Promise<TestApp> {
  return spawnApp({ name: 'api', env: { ...env, PORT: String(port) } });
}

/** Creates rooms and reads them back, eight callers at once, until it is told to stop. */
function keepCalling() {
  const statuses: Record<string, number> = {};
  let created = 0;
  let calls = 0;
  let stopping = false;
  let told: (() => void)[] = [];
  const call = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(`${nginx.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    calls += 1;
    for (const tell of told) tell();
    return response;
  };
  const caller = async () => {
    while (!stopping) {
      const room = await call('/v1/rooms', { method: 'POST', body: '{"name":"Load"}' });
      if (room.status !== 201) continue;
      const body = (await room.json()) as { id: string };
      created += 1;
      await (await call(`/v1/rooms/${body.id}`, {})).arrayBuffer();
    }
  };
  const callers = Array.from({ length: 8 }, caller);
  return {
    /** Resolves after so many more calls. */
    atLeast(count: number): Promise<void> {
      const until = calls + count;
      return new Promise((resolve, reject) => {
        told.push(() => calls >= until && resolve());
        void Promise.all(callers).catch(reject);
      });
    },
    async stop() {
      stopping = true;
      told = [];
      await Promise.all(callers);
      return { statuses, created };
    },
  };
}
