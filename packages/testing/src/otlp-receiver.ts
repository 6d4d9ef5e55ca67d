import { createServer, type IncomingMessage } from 'node:http';
import { readMessage } from './otlp-protobuf.js';
import { listenUntilEnd } from './sockets.js';

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

interface ReceivedLog {
  body: string;
  severityText: string;
  traceId: string;
  spanId: string;
  attributes: Attributes;
  service: string;
}

interface ReceivedMetric {
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

/** Starts a receiver of OTLP over HTTP. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver: OtlpReceiver = { url: '', spans: [], logs: [], metrics: [], requests: [] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      receive(receiver, request, Buffer.concat(chunks));
      response.setHeader('content-type', 'application/x-protobuf').end();
    });
  });
  receiver.url = (await listenUntilEnd(server)).origin;
  return receiver;
}

/** OTLP's messages, as the exporters of the apps write them. */
interface Message {
  resourceSpans?: { resource: Described; scopeSpans: { spans: RawSpan[] }[] }[];
  resourceLogs?: { resource: Described; scopeLogs: { logRecords: RawLog[] }[] }[];
  resourceMetrics?: { resource: Described; scopeMetrics: { metrics: RawMetric[] }[] }[];
}

interface Described {
  attributes?: readonly { key: string; value: AnyValue }[];
}

type RawSpan = Described & {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  status?: { code?: number };
};
type RawLog = Described & { body: AnyValue; severityText: string; traceId?: string; spanId?: string };
type RawData = { dataPoints: (Described & Record<string, unknown>)[] };
type RawMetric = { name: string; unit?: string; sum?: RawData; gauge?: RawData; histogram?: RawData };

function receive(receiver: OtlpReceiver, { url = '', headers }: IncomingMessage, body: Buffer): void {
  const type = headers['content-type'] ?? '';
  receiver.requests.push({ path: url, type, authorization: headers.authorization, body });
  const { resourceSpans = [], resourceLogs = [], resourceMetrics = [] } = readMessage(url, body) as Message;
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = serviceOf(resource);
    receiver.spans.push(...scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, service))));
  }
  for (const { resource, scopeLogs } of resourceLogs) {
    const service = serviceOf(resource);
    receiver.logs.push(...scopeLogs.flatMap(({ logRecords }) => logRecords.map((log) => logOf(log, service))));
  }
  for (const { resource, scopeMetrics } of resourceMetrics) {
    const service = serviceOf(resource);
    receiver.metrics.push(...scopeMetrics.flatMap(({ metrics }) => metrics.map((metric) => metricOf(metric, service))));
  }
}

function serviceOf(resource: Described): string {
  return String(read(resource)['service.name']);
}

function spanOf(span: RawSpan, service: string): ReceivedSpan {
  const { traceId, spanId, parentSpanId = '', name, kind, status } = span;
  return { traceId, spanId, parentSpanId, name, kind, status: status?.code ?? 0, attributes: read(span), service };
}

function logOf(log: RawLog, service: string): ReceivedLog {
  const { body, severityText, traceId = '', spanId = '' } = log;
  return { body: body.stringValue ?? '', severityText, traceId, spanId, attributes: read(log), service };
}

function metricOf({ name, unit = '', sum, gauge, histogram }: RawMetric, service: string): ReceivedMetric {
  const kind = sum !== undefined ? 'sum' : gauge !== undefined ? 'gauge' : 'histogram';
  const { dataPoints = [] } = sum ?? gauge ?? histogram ?? {};
  return { name, unit, kind, points: dataPoints.map((point) => ({ ...point, attributes: read(point) })), service };
}

function read({ attributes = [] }: Described): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue, boolValue } = value;
      return [key, stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue))];
    }),
  );
}
