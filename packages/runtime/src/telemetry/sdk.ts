import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Static, TObject } from 'typebox';
import Transport from 'winston-transport';
import type { telemetrySettings } from '../config/common-settings.js';
import { addTransport, type Logger, redactFields, redactText } from '../logging/logger.js';
import type { Metrics } from '../metrics/metrics.js';
import { PrometheusProducer } from './prometheus-producer.js';
import type { StartSpan } from './spans.js';

// Loaded on demand: telemetry.ts is the only importer. The SDK reads most OTEL_… settings from the environment itself.

/** Apps parse these settings; the SDK has the same defaults. */
export interface SdkSettings extends Partial<Static<TObject<typeof telemetrySettings>>> {
  app: string;
}

export interface Sdk {
  startSpan: StartSpan | null;
  /** Exports the rest. Never rejects. */
  close(): Promise<void>;
}

const SCOPE = 'callplane';
const EXPORT_TIMEOUT_MS = 10_000;
const METRIC_INTERVAL_MS_DEFAULT = 60_000;
/** A collector that is away causes a failure every few seconds, for each kind of data. */
const FAILURE_LOG_EVERY_MS = 60_000;
/** Message of the log line about failed exports, which is not exported itself. */
const EXPORT_FAILED = 'telemetry export failed';

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
} as const;

/** Starts the SDK. It exports in the background, from bounded queues. */
export function startSdk(settings: SdkSettings, { logger, metrics }: { logger: Logger; metrics: Metrics }): Sdk {
  reportFailures(logger);
  // The exporters read the headers from the environment. The setting may come from a file.
  const { OTEL_EXPORTER_OTLP_HEADERS: headers } = settings;
  if (headers !== undefined) process.env['OTEL_EXPORTER_OTLP_HEADERS'] = headers;
  const resource = resourceOf(settings.app);
  const closing: (() => Promise<void>)[] = [];
  let startSpan: StartSpan | null = null;
  if (settings.OTEL_TRACES_EXPORTER !== 'none') {
    const provider = new BasicTracerProvider({
      resource,
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    });
    startSpan = spanMaker(provider.getTracer(SCOPE));
    closing.push(() => provider.shutdown());
  }
  if (settings.OTEL_METRICS_EXPORTER !== 'none') {
    metrics.addProcessMetrics();
    const exportIntervalMillis = settings.OTEL_METRIC_EXPORT_INTERVAL ?? METRIC_INTERVAL_MS_DEFAULT;
    const reader = new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter(),
      exportIntervalMillis,
      exportTimeoutMillis: Math.min(EXPORT_TIMEOUT_MS, exportIntervalMillis),
      metricProducers: [new PrometheusProducer(() => metrics.values(), resource)],
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    closing.push(() => provider.shutdown());
  }
  if (settings.OTEL_LOGS_EXPORTER !== 'none') {
    const processor = new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() });
    const provider = new LoggerProvider({ resource, processors: [processor] });
    addTransport(logger, new LogTransport(provider.getLogger(SCOPE), EXPORT_FAILED));
    closing.push(() => provider.shutdown());
  }
  return {
    startSpan,
    close: async () => {
      await Promise.allSettled(closing.map((close) => close()));
    },
  };
}

function resourceOf(app: string) {
  const own = resourceFromAttributes({
    'service.name': `callplane-${app}`,
    'service.namespace': 'callplane',
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
    'callplane.app': app,
  });
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last: they win.
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

/** Logs failures of the SDK, such as a collector that does not answer, at most once a minute. */
function reportFailures(logger: Logger): void {
  let loggedAtMs = -Infinity;
  let unreported = 0;
  const report = (message: string): void => {
    unreported += 1;
    if (performance.now() - loggedAtMs < FAILURE_LOG_EVERY_MS) return;
    loggedAtMs = performance.now();
    logger.warn(EXPORT_FAILED, { reason: message.slice(0, 500), failures: unreported });
    unreported = 0;
  };
  const nothing = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

function spanMaker(tracer: Tracer): StartSpan {
  return (name, { kind, parent, attributes = {} }) => {
    const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent));
    const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
      spanId,
      end: (end = {}) => {
        if (end.name !== undefined) span.updateName(end.name);
        if (end.attributes !== undefined) span.setAttributes(end.attributes);
        if (end.error !== undefined && end.error !== null) {
          span.setAttribute('error.type', end.error);
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  };
}

/** @param traceparent in the form of version 00 */
function spanContextOf(traceparent: string) {
  return {
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16),
    isRemote: true,
  };
}

type OtlpLogger = ReturnType<LoggerProvider['getLogger']>;

/** `SeverityNumber` of OpenTelemetry. */
const SEVERITY: Readonly<Record<string, number>> = { debug: 5, info: 9, warn: 13, error: 17 };
interface LogLine {
  time: string;
  level: string;
  message: string;
  app?: unknown;
  traceId?: string;
  spanId?: string;
  error?: { name?: string; message?: string; stack?: string };
  [field: string]: unknown;
}

/** Passes each log line on to OpenTelemetry, redacted as on standard output. */
export class LogTransport extends Transport {
  readonly #logger: OtlpLogger;
  readonly #omitted: string;

  /** @param omitted message of the lines that are not passed on */
  constructor(logger: OtlpLogger, omitted: string) {
    super();
    this.#logger = logger;
    this.#omitted = omitted;
  }

  override log(info: { message: unknown }, done: () => void): void {
    if (info.message !== this.#omitted) this.#emit(JSON.parse(JSON.stringify(info, redacted)) as LogLine);
    done();
  }

  #emit(line: LogLine): void {
    // Addresses of clients stay on standard output.
    const { time, level, message, app: _app, ip: _ip, traceId, spanId, error, ...fields } = line;
    const hasSpan = traceId !== undefined && spanId !== undefined;
    this.#logger.emit({
      timestamp: new Date(time),
      severityNumber: SEVERITY[level] ?? 0,
      severityText: level.toUpperCase(),
      body: message,
      attributes: {
        ...(fields as Record<string, string>),
        // The trace of a line without a span is an attribute, because a record has a span or no trace.
        ...(hasSpan || traceId === undefined ? {} : { traceId }),
        ...(error === undefined ? {} : exceptionOf(error)),
      },
      ...(hasSpan ? { context: trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1 }) } : {}),
    });
  }
}

/** Redacts each text by itself: in the text of the whole line, a pattern may span two fields and break its JSON. */
function redacted(key: string, value: unknown): unknown {
  const shown = redactFields(key, value);
  return typeof shown === 'string' ? redactText(shown) : shown;
}

function exceptionOf({
  name = 'Error',
  message = '',
  stack = '',
}: NonNullable<LogLine['error']>): Record<string, string> {
  return { 'exception.type': name, 'exception.message': message, 'exception.stacktrace': stack };
}
