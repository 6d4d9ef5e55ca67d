import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { eventually, startOtlpReceiver, stopAtEnd } from '@callplane/testing';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '../logging/logger.js';
import { createMetrics } from '../metrics/metrics.js';
import { startSdk } from './sdk.js';
import { startSpan } from './spans.js';
import { Telemetry, type TelemetryConfig } from './telemetry.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

const started: Telemetry[] = [];
const environment = { ...process.env };
beforeEach(() => {
  process.env = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('OTEL_')));
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((telemetry) => telemetry.close()));
  process.env = { ...environment };
});

/** Starts OpenTelemetry as an app does. The SDK reads the environment itself. */
async function start(endpoint: string | undefined, config: Partial<TelemetryConfig> = {}) {
  if (endpoint !== undefined) process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = endpoint;
  const stream = new PassThrough();
  const logger = createLogger({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, 'test', stream);
  const metrics = createMetrics({ app: 'test' });
  const load = jest.fn(() => Promise.resolve({ startSdk }));
  const settings = { ...(endpoint === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }), ...config };
  const telemetry = new Telemetry('test', settings, { logger, metrics, load });
  started.push(telemetry);
  await telemetry.ready;
  return { telemetry, logger, metrics, load, log: () => String(stream.read() ?? '') };
}

test('without an endpoint, or if it is disabled, nothing is loaded and no span begins', async () => {
  for (const [endpoint, config] of [
    [undefined, {}],
    ['', {}],
    ['http://127.0.0.1:9', { OTEL_SDK_DISABLED: true }],
  ] as const) {
    const { telemetry, load } = await start(endpoint, config);
    expect(load).not.toHaveBeenCalled();
    expect(startSpan('work', { kind: 'internal', parent: PARENT })).toBeNull();
    await telemetry.close();
  }
});

describe('to a collector', () => {
  test('go spans with their parents, failures, and the decision of the sampler', async () => {
    const collector = await startOtlpReceiver();
    const { telemetry } = await start(collector.url, { OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' });
    const attributes = { 'callplane.attempt': 2, 'callplane.room.id': undefined };
    const outer = startSpan('GET', { kind: 'server', parent: PARENT, attributes })!;
    const inner = startSpan('step', { kind: 'internal', parent: outer.traceparent })!;
    inner.end({ error: 'TypeError' });
    outer.end({ name: 'GET /v1/rooms', attributes: { 'http.response.status_code': 200 } });
    startSpan('first', { kind: 'consumer', parent: null })!.end();
    const unsampled = startSpan('unsampled', { kind: 'client', parent: PARENT.replace(/01$/, '00') })!;
    expect(unsampled.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-00$`));
    unsampled.end();
    await telemetry.close();
    expect(collector.spans.map(({ name, kind, status }) => [name, kind, status])).toEqual([
      ['step', 1, 2],
      ['GET /v1/rooms', 2, 0],
      ['first', 5, 0],
    ]);
    const [step, request, first] = collector.spans;
    expect(step).toMatchObject({
      traceId: TRACE_ID,
      parentSpanId: outer.spanId,
      attributes: { 'error.type': 'TypeError' },
    });
    expect(request).toMatchObject({ traceId: TRACE_ID, spanId: outer.spanId, parentSpanId: 'b7ad6b7169203331' });
    expect(request!.attributes).toEqual({ 'callplane.attempt': 2, 'http.response.status_code': 200 });
    expect(first).toMatchObject({ parentSpanId: '', service: 'callplane-test' });
    expect(first!.traceId).not.toBe(TRACE_ID);
    expect(startSpan('after the end', { kind: 'internal', parent: null })).toBeNull();
  });

  test('go the metrics of the process under their names, and the standard settings are honoured', async () => {
    const collector = await startOtlpReceiver();
    Object.assign(process.env, { OTEL_SERVICE_NAME: 'calls', OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test' });
    const { telemetry, metrics } = await start(collector.url, {
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hush',
    });
    expect(startSpan('work', { kind: 'internal', parent: null })).toBeNull();
    metrics.counter({ name: 'callplane_things_total', help: 'Things.', labels: ['kind'] }).inc({ kind: 'a' }, 3);
    metrics.gauge({ name: 'callplane_open_bytes', help: 'Bytes.' }, () => 7);
    const durations = metrics.histogram({ name: 'callplane_duration_seconds', help: 'Time.', buckets: [1, 5] });
    for (const seconds of [0.5, 0.7, 3, 20]) durations.observe(seconds);
    await telemetry.close();
    const of = (name: string) => collector.metrics.find((metric) => metric.name === name);
    expect(of('callplane_things_total')).toMatchObject({
      kind: 'sum',
      service: 'calls',
      points: [{ attributes: { kind: 'a', app: 'test' }, asDouble: 3 }],
    });
    expect(of('callplane_open_bytes')).toMatchObject({ kind: 'gauge', unit: 'By', points: [{ asDouble: 7 }] });
    const [point] = of('callplane_duration_seconds')!.points;
    expect(of('callplane_duration_seconds')).toMatchObject({ kind: 'histogram', unit: 's' });
    expect(point).toMatchObject({ sum: 24.2, explicitBounds: [1, 5] });
    expect((point!['bucketCounts'] as unknown[]).map(Number)).toEqual([2, 1, 1]);
    expect(of('process_cpu_user_seconds_total')).toMatchObject({ kind: 'sum' });
    expect(collector.requests.every(({ authorization }) => authorization === 'Bearer hush')).toBe(true);
  });

  test('go redacted log lines with their trace, without addresses of clients', async () => {
    const collector = await startOtlpReceiver();
    const { telemetry, logger } = await start(collector.url, {
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_METRICS_EXPORTER: 'none',
    });
    const child = logger.child({ instanceId: 'i1' });
    child.info('request', {
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
      ip: '203.0.113.9',
      token: 'hush',
      status: 200,
    });
    child.error('task failed', { traceId: TRACE_ID, error: new TypeError('whsec_hushhushhush') });
    child.warn('a text that looks like a password across two fields', { url: 'http://host', name: 'a@b' });
    child.warn('a password', { url: 'redis://user:hush@host' });
    child.debug('below the level');
    await telemetry.close();
    const [first, second, third, fourth] = collector.logs.filter(({ attributes }) => attributes['instanceId'] === 'i1');
    expect(first).toMatchObject({
      body: 'request',
      severityText: 'INFO',
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
    });
    expect(first!.attributes).toEqual({ instanceId: 'i1', status: 200, token: '[redacted]' });
    expect(second).toMatchObject({ body: 'task failed', severityText: 'ERROR', spanId: '' });
    expect(second!.attributes).toMatchObject({
      traceId: TRACE_ID,
      'exception.type': 'TypeError',
      'exception.message': 'whsec_[redacted]',
    });
    expect(third!.attributes).toEqual({ instanceId: 'i1', url: 'http://host', name: 'a@b' });
    expect(fourth!.attributes).toMatchObject({ url: 'redis://user:[redacted]@host' });
    expect(collector.logs.map(({ body }) => body)).not.toContain('below the level');
    expect(collector.requests.map(({ body }) => body.toString()).join()).not.toMatch(/hush(?!\w)|203\.0/);
  });
});

describe('a collector that', () => {
  /** More than any queue holds. */
  const MANY = 5000;

  test('refuses connections costs one log line, and ends nothing', async () => {
    const { telemetry, logger, log } = await start('http://127.0.0.1:9');
    for (let n = 0; n < MANY; n += 1) startSpan('work', { kind: 'internal', parent: null })!.end();
    for (let n = 0; n < 10; n += 1) logger.info('line');
    await telemetry.close();
    await eventually(() => log().includes('telemetry export failed'));
  });

  test('takes connections and never answers delays the end of the process by its bound only', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    stopAtEnd(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
    });
    const { telemetry } = await start(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    for (let n = 0; n < MANY; n += 1) startSpan('work', { kind: 'internal', parent: null })!.end();
    // Resolves although no export does.
    await telemetry.close();
    expect(startSpan('work', { kind: 'internal', parent: null })).toBeNull();
  });
});
