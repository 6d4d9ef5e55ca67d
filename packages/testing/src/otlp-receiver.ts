import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stopAtEnd } from './resources.js';

type AnyValue = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
type Attributes = Record<string, string | number | boolean | undefined>;

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for the first span of a trace. */
  parentSpanId: string;
  name: string;
  /** `SpanKind` of OTLP: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  /** 2 is an error. */
  status: number;
  attributes: Attributes;
  service: string;
}

export interface ReceivedLog {
  body: string;
  severityText: string;
  traceId: string;
  spanId: string;
  attributes: Attributes;
  service: string;
}

export interface ReceivedMetric {
  name: string;
  unit: string;
  kind: 'sum' | 'gauge' | 'histogram';
  points: { attributes: Attributes; [field: string]: unknown }[];
  service: string;
}

export interface OtlpReceiver {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: ReceivedSpan[];
  logs: ReceivedLog[];
  metrics: ReceivedMetric[];
  /** Paths, content types and bodies of all requests. */
  requests: { path: string; type: string; authorization: string | undefined; body: Buffer }[];
}

/** Starts a receiver of OTLP over HTTP, which reads JSON. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver: OtlpReceiver = { url: '', spans: [], logs: [], metrics: [], requests: [] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      receive(receiver, request, Buffer.concat(chunks));
      response.setHeader('content-type', request.headers['content-type'] ?? 'application/json');
      response.end(request.headers['content-type'] === 'application/json' ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopAtEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}

function receive(receiver: OtlpReceiver, { url = '', headers }: IncomingMessage, body: Buffer): void {
  const type = headers['content-type'] ?? '';
  receiver.requests.push({ path: url, type, authorization: headers.authorization, body });
  if (type !== 'application/json') return;
  // OTLP's JSON, as the exporters of this repository write it.
  const {
    resourceSpans = [],
    resourceLogs = [],
    resourceMetrics = [],
  } = JSON.parse(body.toString()) as Record<string, any[]>;
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = String(read(resource.attributes)['service.name']);
    for (const { spans } of scopeSpans) {
      for (const { parentSpanId = '', status, attributes, ...span } of spans) {
        receiver.spans.push({
          ...span,
          parentSpanId,
          status: status?.code ?? 0,
          attributes: read(attributes),
          service,
        });
      }
    }
  }
  for (const { resource, scopeLogs } of resourceLogs) {
    const service = String(read(resource.attributes)['service.name']);
    for (const { logRecords } of scopeLogs) {
      for (const { body: text, traceId = '', spanId = '', severityText, attributes } of logRecords) {
        const line = { body: text.stringValue, severityText, traceId, spanId, attributes: read(attributes), service };
        receiver.logs.push(line);
      }
    }
  }
  for (const { resource, scopeMetrics } of resourceMetrics) {
    const service = String(read(resource.attributes)['service.name']);
    for (const { metrics } of scopeMetrics) {
      for (const metric of metrics) receiver.metrics.push({ ...metricOf(metric), service });
    }
  }
}

function metricOf(metric: any): Omit<ReceivedMetric, 'service'> {
  const kind = metric.sum ? 'sum' : metric.gauge ? 'gauge' : 'histogram';
  const points = metric[kind].dataPoints.map((point: any) => ({ ...point, attributes: read(point.attributes) }));
  return { name: metric.name, unit: metric.unit ?? '', kind, points };
}

function read(attributes: readonly { key: string; value: AnyValue }[] = []): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue, boolValue } = value;
      return [key, stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue))];
    }),
  );
}
