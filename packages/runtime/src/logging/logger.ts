import Transport from 'winston-transport';
import { API_KEY_PATTERN } from '@callplane/core';
import { createLogger as createWinston, format, type Logger as Winston } from 'winston';
import { createLineWriter, type LineWriter } from './line-writer.js';

const REDACTED = '[redacted]';

/** Names of fields whose values are never logged. */
const SECRET_FIELD =
  /^(authorization|cookie|password|passphrase|secret|token|credential|apikey|api_key|signingsecret|privatekey|metadata|body)$/i;

/** Patterns of secrets that are recognised anywhere in a text. */
const SECRET_FORMS: readonly (readonly [RegExp, string])[] = [
  [API_KEY_PATTERN, 'rtc_[redacted]'],
  // JSON Web Tokens: header and payload both begin with base64url of `{"`.
  [/eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]+/g, 'jwt_[redacted]'],
  [/whsec_[A-Za-z0-9+/=_-]{8,}/g, 'whsec_[redacted]'],
  // The password in the user part of a URL.
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi, '$1:[redacted]@'],
  [/\bBearer\s+[\w.~+/-]+=*/gi, 'Bearer [redacted]'],
];

/** Every text with a secret pattern contains one of these marks. Most lines contain none and skip the patterns. */
const MARKS = ['rtc_', 'eyJ', 'whsec_', '://', 'earer ', 'EARER '];

/** Replaces the secrets in a text. */
export function redactText(text: string): string {
  if (!MARKS.some((mark) => text.includes(mark))) return text;
  let redacted = text;
  for (const [form, replacement] of SECRET_FORMS) redacted = redacted.replace(form, replacement);
  return redacted;
}

const secretFields = new Map<string, boolean>();

/** Whether all fields are plain values under harmless names. Such fields can be written without `redactFields`. */
function isPlain(fields: Record<string, unknown>): boolean {
  for (const key in fields) {
    if (typeof fields[key] === 'object' && fields[key] !== null) return false;
    let secret = secretFields.get(key);
    if (secret === undefined) {
      secret = SECRET_FIELD.test(key);
      // Field names are usually constants in the code. The bound protects against generated names.
      if (secretFields.size < 1000) secretFields.set(key, secret);
    }
    if (secret || typeof fields[key] === 'bigint') return false;
  }
  return true;
}

/** A `JSON.stringify` replacer that hides secret fields and writes errors with their causes. */
export function redactFields(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (SECRET_FIELD.test(key)) return REDACTED;
  if (value instanceof Error) {
    return {
      name: value.name,
      message: value.message,
      code: (value as { code?: unknown }).code,
      stack: value.stack,
      cause: value.cause,
    };
  }
  return typeof value === 'bigint' ? value.toString() : value;
}

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
