import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Database } from '@callplane/db';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  gatewayUrlOf,
  spawnApp,
  startOtlpReceiver,
  startTestRedis,
  stopAtEnd,
  type OtlpReceiver,
  type ReceivedSpan,
  type TestApp,
} from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';

/**
 * Follows one trace from a request through its operation to the receivers of its webhooks: in logs and headers, and as
 * spans at a collector of OpenTelemetry.
 */

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`;

const received: { type: string; body: string; headers: IncomingHttpHeaders }[] = [];
let collector: OtlpReceiver;
let key: string;
let apps: Record<'api' | 'cleanup-worker' | 'webhook-worker' | 'signaling', TestApp>;

beforeAll(async () => {
  const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  collector = await startOtlpReceiver();
  const database = new Database({ url: target.url, poolMax: 1 });
  key = (await createTestTenant(database)).key;
  await database.close();
  const env = {
    DATABASE_URL: target.url,
    REDIS_URL: redis.url,
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  };
  const telemetry = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_BLRP_SCHEDULE_DELAY: '100',
    OTEL_METRIC_EXPORT_INTERVAL: '2000',
  };
  const start = (name: string, more = {}) => spawnApp({ name, env: { ...env, ...telemetry, ...more } });
  const [api, cleanup, webhook, signaling] = await Promise.all([
    start('api'),
    start('cleanup-worker'),
    start('webhook-worker'),
    start('signaling', { DATABASE_URL: gatewayUrlOf(target.url) }),
  ]);
  apps = { api, 'cleanup-worker': cleanup, 'webhook-worker': webhook, signaling };
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      received.push({ type: JSON.parse(body).type, body, headers: request.headers });
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  stopAtEnd(() => new Promise((resolve) => receiver.close(resolve)));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hush?token=hush`;
  expect((await call('POST', '/v1/webhooks', {}, { url })).status).toBe(201);
});

test('a trace is logged with the request, its operation and its deliveries, and sent to the receiver', async () => {
  const room = await (await call('POST', '/v1/rooms', { traceparent: TRACEPARENT }, { name: 'Traced' })).json();
  expect([202, 204]).toContain((await call('DELETE', `/v1/rooms/${room.id}`, { traceparent: TRACEPARENT })).status);
  await eventually(() => received.some(({ type }) => type === 'room.ended'));
  for (const { headers } of received) {
    // The trace id is unchanged, and the parent is a span of Callplane.
    expect(headers.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-(?!${PARENT_ID})[0-9a-f]{16}-01$`));
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

test('spans of all apps reach the collector with their parents, and hold neither URLs, names nor keys', async () => {
  const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === TRACE_ID);
  const named = (name: string) => ofTrace().filter((span) => span.name === name);
  const isDelivery = (type: string) => (span: ReceivedSpan) => span.attributes['callplane.event.type'] === type;
  // The spans of an attempt end after the receiver has its request.
  await eventually(() => named('process webhook-delivery').some(isDelivery('room.ended')));
  await eventually(() => named('POST /v1/rooms').length === 1 && named('DELETE /v1/rooms/{roomId}').length === 1);
  const [created] = named('POST /v1/rooms');
  const [ended] = named('DELETE /v1/rooms/{roomId}');
  const [operation] = named('process room.end');
  expect(created).toMatchObject({
    service: 'callplane-api',
    kind: 2,
    parentSpanId: PARENT_ID,
    attributes: { 'http.route': '/v1/rooms', 'http.response.status_code': 201 },
  });
  expect(operation).toMatchObject({
    service: 'callplane-cleanup-worker',
    kind: 5,
    parentSpanId: ended!.spanId,
    attributes: { 'messaging.destination.name': 'room-end', 'callplane.outcome': 'completed' },
  });
  const [destroying] = named('destroy the media room');
  expect(destroying).toMatchObject({ kind: 1, parentSpanId: operation!.spanId });
  const delivered = (type: string) => named('process webhook-delivery').find(isDelivery(type));
  expect(delivered('room.created')).toMatchObject({
    service: 'callplane-webhook-worker',
    parentSpanId: created!.spanId,
  });
  expect(delivered('room.ended')).toMatchObject({ kind: 5, parentSpanId: operation!.spanId });
  const post = named('POST').find(({ parentSpanId }) => parentSpanId === delivered('room.ended')!.spanId);
  expect(post).toMatchObject({ kind: 3, attributes: { 'server.address': '127.0.0.1' } });
  const sent = received.find(({ type }) => type === 'room.ended')!.headers.traceparent;
  expect(sent).toBe(`00-${TRACE_ID}-${post!.spanId}-01`);
  const text = JSON.stringify(collector.spans);
  for (const secret of ['hush', 'Traced', key]) expect(text).not.toContain(secret);
});

test('a join at the gateway begins a trace, which its events carry on', async () => {
  const room = await (await call('POST', '/v1/rooms', {}, { name: 'Joined' })).json();
  const answer = await (await call('POST', `/v1/rooms/${room.id}/tokens`, {}, { participantName: 'Ada' })).json();
  const socket = new WebSocket(`${apps.signaling.url.replace('http', 'ws')}/v1/signaling`, 'callplane.v1');
  stopAtEnd(async () => socket.terminate());
  socket.on('open', () => socket.send(JSON.stringify({ type: 'join', token: answer.token })));
  await eventually(() => collector.spans.some(({ name }) => name === 'arrival'));
  expect(collector.spans.find(({ name }) => name === 'arrival')).toMatchObject({
    service: 'callplane-signaling',
    kind: 2,
    parentSpanId: '',
    attributes: { 'callplane.outcome': 'joined', 'callplane.room.id': room.id },
  });
  const joined = () => received.find(({ type, body }) => type === 'participant.joined' && body.includes(room.id));
  await eventually(() => joined() !== undefined);
  expect(joined()!.headers.traceparent?.slice(3, 35)).toBe(
    collector.spans.find(({ name }) => name === 'arrival')!.traceId,
  );
});

test('metrics and log lines of every app reach the collector', async () => {
  const services = ['api', 'cleanup-worker', 'signaling', 'webhook-worker'].map((name) => `callplane-${name}`);
  const serving = (name: string) =>
    [...new Set(collector.metrics.filter((metric) => metric.name === name).map(({ service }) => service))].sort();
  await eventually(() => serving('callplane_database_connections').join() === services.join());
  await eventually(() =>
    collector.logs.some(({ body, traceId, spanId }) => body === 'operation attempt' && traceId === TRACE_ID && spanId),
  );
  expect(collector.logs.map(({ attributes }) => attributes['ip']).filter((ip) => ip !== undefined)).toEqual([]);
});

test('a malformed traceparent is ignored and never rejects a request', async () => {
  for (const traceparent of ['nonsense', `${TRACEPARENT}-more`, `00-${'0'.repeat(32)}-${PARENT_ID}-01`]) {
    const answer = await call('POST', '/v1/rooms', { traceparent }, { name: 'Untraced' });
    expect(answer.status).toBe(201);
    const { id } = await answer.json();
    const event = () => received.find(({ type, body }) => type === 'room.created' && body.includes(id));
    await eventually(() => event() !== undefined);
    // The request begins a trace of its own.
    expect(event()!.headers.traceparent).toMatch(new RegExp(`^00-(?!${TRACE_ID})[0-9a-f]{32}-[0-9a-f]{16}-01$`));
  }
});

function call(method: string, path: string, headers: Record<string, string>, body?: object): Promise<Response> {
  return fetch(`${apps.api.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
