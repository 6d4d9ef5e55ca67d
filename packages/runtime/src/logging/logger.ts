import { createLogger as createWinston, format, type Logger as Winston } from 'winston';
import Transport from 'winston-transport';
import { createLineWriter, type LineWriter } from './line-writer.js';
import { isPlain, redactFields, redactText } from './redact.js';

/**
 * Writes one structured line per event: a constant message, and variable data as fields. Never log bodies or secrets.
 */
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

/** The property in which winston expects the finished line. */
const MESSAGE = Symbol.for('message');

/**
 * Creates the logger of the process, which writes to standard output.
 * @param app name of the app, in every line.
 */
export function createLogger(
  settings: LogSettings,
  app: string,
  stream: NodeJS.WritableStream = process.stdout,
): Logger {
  const pretty = settings.LOG_FORMAT === 'pretty' || (settings.LOG_FORMAT === 'auto' && process.stdout.isTTY);
  const transport = new LineTransport(stream, (count) => logger.warn('log lines dropped', { count }));
  const winston = createWinston({
    level: settings.LOG_LEVEL,
    format: pretty ? prettyLine() : jsonLine(),
    transports: [transport],
  });
  const logger = fieldsLogger(winston, { app });
  return logger;
}

/**
 * Writes all lines of one event-loop tick together. Under load this needs one system call for many requests. Lines that
 * are still buffered when the process exits are written at exit.
 */
class LineTransport extends Transport {
  readonly #writer: LineWriter;
  #lines = '';

  constructor(stream: NodeJS.WritableStream, onResumed: (lost: number) => void) {
    super();
    this.#writer = createLineWriter(stream, onResumed);
    // Node writes warnings to standard error. A full disk behind it must not end the process either.
    if (process.stderr.listenerCount('error') === 0) process.stderr.on('error', () => undefined);
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
    this.#writer.write(lines);
  }
}

const winstons = new WeakMap<Logger, Winston>();

/** Passes every line of the logger's process on to another transport, too. */
export function addTransport(logger: Logger, transport: Transport): void {
  winstons.get(logger)?.add(transport);
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
      // The line keeps this order, so that the most important fields come first.
      winston.log({ time: new Date().toISOString(), level, message, ...fixed, ...fields });
    };
  const logger: Logger = {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    child: (fields) => fieldsLogger(winston, { ...fixed, ...fields }),
  };
  winstons.set(logger, winston);
  return logger;
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

/** Logs losses and recoveries of a Redis connection, for `connectRedis` of packages/queue. */
export function redisEvents(logger: Logger, connection: string): { onLost(error: Error): void; onReady(): void } {
  return {
    onLost: (error) => logger.warn('redis connection lost', { connection, error }),
    onReady: () => logger.info('redis connected', { connection }),
  };
}
