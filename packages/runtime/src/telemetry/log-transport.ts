import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { LoggerProvider } from '@opentelemetry/sdk-logs';
import Transport from 'winston-transport';
import { redactFields, redactText } from '../logging/logger.js';

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
