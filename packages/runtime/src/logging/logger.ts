import { createLogger as createWinston, format, type Logger as Winston } from 'winston';
import Transport from 'winston-transport';
import { isPlain, redactFields, redactText } from './redact.js';

/** One structured line an event: a constant message, and what varies as fields. Never bodies, never secrets. */
export interface Logger {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  debug(message: string, fields?: Record<string, unknown>): void;
  /** A logger that adds these fields to every line. */
  child(fields: Record<string, unknown>): Logger;
}

export interface LogSettings {
  LOG_LEVEL: 'error' | 'warn' | 'info' | 'debug';
  LOG_FORMAT: 'json' | 'pretty' | 'auto';
}

/** Where winston's own formats find the finished line. */
const MESSAGE = Symbol.for('message');

/**
 * The process's logger, on standard output.
 * @param app name of the app, in every line.
 */
export function createLogger(
  settings: LogSettings,
  app: string,
  stream: NodeJS.WritableStream = process.stdout,
): Logger {
  const pretty = settings.LOG_FORMAT === 'pretty' || (settings.LOG_FORMAT === 'auto' && process.stdout.isTTY);
  const winston = createWinston({
    level: settings.LOG_LEVEL,
    format: pretty ? prettyLine() : jsonLine(),
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- winston's types name an instance here
    transports: [new LineTransport(stream)],
  });
  return fieldsLogger(winston, { app });
}

/**
 * Writes the lines of one turn of the event loop together: under load that is one system call for many requests.
 * Lines that are still here when the process ends are written then.
 */
class LineTransport extends Transport {
  readonly #stream: NodeJS.WritableStream;
  #lines = '';

  constructor(stream: NodeJS.WritableStream) {
    super();
    this.#stream = stream;
    process.once('exit', () => this.#flush());
  }

  override log(info: Record<symbol, string>, done: () => void): void {
    if (this.#lines === '') setImmediate(() => this.#flush());
    this.#lines += `${info[MESSAGE] ?? ''}\n`;
    done();
  }

  #flush(): void {
    if (this.#lines === '') return;
    const lines = this.#lines;
    this.#lines = '';
    this.#stream.write(lines);
  }
}

function fieldsLogger(winston: Winston, fixed: Record<string, unknown>): Logger {
  const enabled = {
    error: true,
    warn: winston.isWarnEnabled(),
    info: winston.isInfoEnabled(),
    debug: winston.isDebugEnabled(),
  };
  const at =
    (level: 'error' | 'warn' | 'info' | 'debug') =>
    (message: string, fields?: Record<string, unknown>): void => {
      if (!enabled[level]) return;
      // In the order of the line: what a person looks for comes first.
      winston.log({ time: new Date().toISOString(), level, message, ...fixed, ...fields });
    };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    child: (fields) => fieldsLogger(winston, { ...fixed, ...fields }),
  };
}

/** `{"time":…,"level":…,"app":…,"message":…, fields…}` */
const jsonLine = format((info) => {
  info[MESSAGE] = redactText(JSON.stringify(info, isPlain(info) ? undefined : redactFields));
  return info;
});

const COLOURS: Record<string, string> = {
  error: '\u001b[31m',
  warn: '\u001b[33m',
  info: '\u001b[36m',
  debug: '\u001b[90m',
};

/** `12:00:00.000 info  api  request method=GET status=200` */
const prettyLine = format((info) => {
  const { time, level, message, app, ...fields } = info;
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => {
      const shown = redactFields(key, value);
      const isError = value instanceof Error;
      const text = isError
        ? `${value.name}: ${value.message}`
        : typeof shown === 'string'
          ? shown
          : JSON.stringify(shown, redactFields);
      return `${key}=${text}`;
    })
    .join(' ');
  info[MESSAGE] = redactText(
    `${String(time).slice(11, 23)} ${COLOURS[level] ?? ''}${level.padEnd(5)}\u001b[0m ${String(app)}  ${String(message)} ${rest}`,
  );
  return info;
});

/** Tells of a Redis connection's losses and returns, for `connectRedis` of packages/queue. */
export function redisEvents(logger: Logger, connection: string): { onLost(error: Error): void; onReady(): void } {
  return {
    onLost: (error) => logger.warn('redis connection lost', { connection, error }),
    onReady: () => logger.info('redis connected', { connection }),
  };
}
