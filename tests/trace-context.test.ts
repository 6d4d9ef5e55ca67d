import {
  eventually,
  startOtlpReceiver,
  stopAtEnd,
  type OtlpReceiver,
  type ReceivedSpan,
  type TestApp,
} from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from './faults/webhooks.testkit.js';

/**
 * Follows one trace from a request through its operation to the receivers of its webhooks: in logs and headers, and as
 * spans at a collector of OpenTelemetry.
 */

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`;

let stack: WebhookStack;
let receiver: Receiver;
let collector: OtlpReceiver;
let apps: Record<'api' | 'cleanup-worker' | 'webhook-worker' | 'signaling', TestApp>;

beforeAll(async () => {
  [stack, receiver, collector] = await Promise.all([startWebhookStack(), startReceiver(), startOtlpReceiver()]);
  const telemetry = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  };
  const [api, cleanup, webhook, signaling] = await Promise.all([
    stack.spawnApi(telemetry),
    stack.spawnWorker(telemetry),
    stack.spawnWebhookWorker(telemetry),
    stack.spawnSignaling(telemetry),
  ]);
  apps = { api, 'cleanup-worker': cleanup, 'webhook-worker': webhook, signaling };
  expect((await call('POST', '/v1/webhooks', { url: `${receiver.url}/hush?token=hush` })).status).toBe(201);
});

/** The request of an event that has arrived. */
const received = (type: string, roomId = '') =>
  receiver.requests.find(({ event, body }) => event.type === type && body.includes(roomId));

test('a trace is logged with the request, its operation and its deliveries, and sent to the receiver', async () => {
  const room = (await call('POST', '/v1/rooms', { name: 'Traced' }, TRACEPARENT)).body;
  expect([202, 204]).toContain((await call('DELETE', `/v1/rooms/${room.id}`, undefined, TRACEPARENT)).status);
  await eventually(() => received('room.ended') !== undefined);
  for (const { headers } of receiver.requests) {
    // The trace id is unchanged, and the parent is a span of Callplane.
    expect(headers.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-(?!${PARENT_ID})[0-9a-f]{16}-01$`));
  }
  const parents = receiver.requests.map(({ headers }) => headers.traceparent);
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
  const sent = received('room.ended')!.headers.traceparent;
  expect(sent).toBe(`00-${TRACE_ID}-${post!.spanId}-01`);
  const text = JSON.stringify(collector.spans);
  for (const secret of ['hush', 'Traced', stack.tenant.key]) expect(text).not.toContain(secret);
});

test('a join at the gateway begins a trace, which its events carry on', async () => {
  const room = (await call('POST', '/v1/rooms', { name: 'Joined' })).body;
  const answer = (await call('POST', `/v1/rooms/${room.id}/tokens`, { participantName: 'Ada' })).body;
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
  const joined = () => received('participant.joined', room.id);
  await eventually(() => joined() !== undefined);
  expect(joined()!.headers.traceparent?.slice(3, 35)).toBe(
    collector.spans.find(({ name }) => name === 'arrival')!.traceId,
  );
});

function call(method: string, path: string, body?: object, traceparent?: string) {
  return stack.call(apps.api, method, path, { ...(body && { body }), ...(traceparent && { traceparent }) });
}
