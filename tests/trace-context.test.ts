import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Database } from '@callplane/db';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestRedis,
  stopAtEnd,
  type TestApp,
} from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';

/** Follows one trace from a request through its operation to the receivers of its webhooks. */

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

const received: { type: string; headers: IncomingHttpHeaders }[] = [];
let key: string;
let apps: Record<'api' | 'cleanup-worker' | 'webhook-worker', TestApp>;

beforeAll(async () => {
  const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url: target.url, poolMax: 1 });
  key = (await createTestTenant(database)).key;
  await database.close();
  const env = {
    DATABASE_URL: target.url,
    REDIS_URL: redis.url,
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  };
  const start = (name: string) => spawnApp({ name, env });
  const [api, cleanup, webhook] = await Promise.all(['api', 'cleanup-worker', 'webhook-worker'].map(start));
  apps = { api: api!, 'cleanup-worker': cleanup!, 'webhook-worker': webhook! };
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      received.push({ type: JSON.parse(body).type, headers: request.headers });
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  stopAtEnd(() => new Promise((resolve) => receiver.close(resolve)));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  expect((await call('POST', '/v1/webhooks', {}, { url })).status).toBe(201);
});

test('a trace is logged with the request, its operation and its deliveries, and sent to the receiver', async () => {
  const room = await (await call('POST', '/v1/rooms', { traceparent: TRACEPARENT }, { name: 'Traced' })).json();
  expect([202, 204]).toContain((await call('DELETE', `/v1/rooms/${room.id}`, { traceparent: TRACEPARENT })).status);
  await eventually(() => received.some(({ type }) => type === 'room.ended'));
  for (const { headers } of received) {
    // The trace id is unchanged, and the parent is a span of Callplane.
    expect(headers.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
  }
  const parents = received.map(({ headers }) => headers.traceparent);
  expect(new Set(parents).size).toBe(parents.length);
  await apps.api.waitForLog((line) => line.message === 'request' && line['traceId'] === TRACE_ID);
  await apps['cleanup-worker'].waitForLog(
    (line) => line.message === 'operation attempt' && line['traceId'] === TRACE_ID,
  );
  await apps['webhook-worker'].waitForLog(
    (line) => line.message === 'delivery attempt' && line['traceId'] === TRACE_ID,
  );
});

test('a malformed traceparent is ignored and never rejects a request', async () => {
  const before = received.length;
  for (const traceparent of ['nonsense', `${TRACEPARENT}-more`, `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
    expect((await call('POST', '/v1/rooms', { traceparent }, { name: 'Untraced' })).status).toBe(201);
  }
  await eventually(() => received.length === before + 3);
  expect(received.slice(before).map(({ headers }) => headers.traceparent)).toEqual([undefined, undefined, undefined]);
});

function call(method: string, path: string, headers: Record<string, string>, body?: object): Promise<Response> {
  return fetch(`${apps.api.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
