import { setTimeout as delay } from 'node:timers/promises';

/**
 * Prisma: login refused, cannot reach, timed out, TLS refused, closed, pool exhausted, transaction not started, too many
 * connections.
 */
const PRISMA_CODES = new Set(['P1000', 'P1001', 'P1002', 'P1008', 'P1011', 'P1017', 'P2024', 'P2028', 'P2037']);
/** PostgreSQL accepts no writes: a standby, a demoted primary, or a server that an operator has set to read-only. */
const READ_ONLY = '25006';
const DISK_FULL = '53100';
/**
 * PostgreSQL: shutting down, crashed, starting up, disk full, out of memory, too many connections, read-only, statement
 * timeout (a frozen client holds its row), login refused (a password is being rotated), conflicts that outlast their
 * repetition. Class 08 is connection exceptions.
 */
const SQL_STATES = /^(08\w{3}|57P0[123]|57014|53[123]00|25006|25P0[34]|28\w{3}|40001|40P01)$/;
/** PostgreSQL cancelled a statement: it took longer than `statement_timeout`, or an operator cancelled it. */
const CANCELED = '57014';
/** The login or the database: every host of a cluster would refuse in the same way. */
const LOGIN_STATES = /^(28\w{3}|3D000)$/;
/** Node and OpenSSL do not accept the certificate of the server. */
const TLS_CODES = /^(ERR_TLS_|ERR_SSL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|CERT_|HOSTNAME_MISMATCH)/;
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
const DRIVER_KINDS = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TooManyConnections',
  'AuthenticationFailed',
  'TlsConnectionError',
]);
/** node-postgres gives these errors no code. `SASL: ` begins the errors of a login. */
const PG_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed and is not queryable|Cannot use a pool after calling end|The server does not support SSL connections|There was an error establishing an SSL connection|SASL: )/;

export class TransactionLateError extends Error {
  constructor(milliseconds: number) {
    super(`the transaction was not over within ${milliseconds} ms`);
  }
}

const UNFIT = {
  'read-only': 'PostgreSQL accepts no writes: the server is a standby, or set to read-only',
  'disk-full': 'PostgreSQL accepts no writes: its disk is full',
  'time-zone': 'the time zone of the PostgreSQL session is not UTC: a pooler has dropped or changed it',
  session:
    'a setting of the PostgreSQL session differs, such as DateStyle: a pooler has dropped or changed it. Run rtc db migrate, and reconnect the pooler',
} as const;

/** PostgreSQL answers, but an app must not work with it as it is. */
export class UnfitServerError extends Error {
  /** Like a refused write, so that callers of a statement treat it in the same way. */
  readonly code = READ_ONLY;

  /** @param reason shown in `/readyz`. */
  constructor(readonly reason: keyof typeof UNFIT) {
    super(UNFIT[reason]);
  }
}

export function stateOf(error: unknown): string {
  return String((error as { code?: unknown } | null | undefined)?.code);
}

export function isReadOnlySession(error: unknown): boolean {
  return stateOf(error) === READ_ONLY;
}

export function isDiskFull(error: unknown): boolean {
  return stateOf(error) === DISK_FULL;
}

/** Whether a statement or its transaction took longer than its deadline. */
export function isOutOfTime(error: unknown): boolean {
  return error instanceof TransactionLateError || stateOf(error) === CANCELED;
}

export function isRefusedLogin(error: unknown): boolean {
  return LOGIN_STATES.test(stateOf(error));
}

/** Whether PostgreSQL has no TLS, or a certificate that is not accepted. */
export function isRefusedTls(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return TLS_CODES.test(String(code)) || String(message).startsWith('The server does not support SSL');
}

/**
 * Whether an error means that PostgreSQL is temporarily unavailable, as opposed to a wrong statement. The API then
 * responds with 503, and a worker retries. Looks through Prisma's wrappers down to the driver's own error.
 */
export function isDatabaseUnavailable(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > 6) return false;
  if (error instanceof TransactionLateError) return true;
  const { code, originalCode, kind, message, cause, meta } = error as Record<string, unknown>;
  if (typeof code === 'string' && (PRISMA_CODES.has(code) || SQL_STATES.test(code) || SOCKET_CODES.has(code)))
    return true;
  if (typeof code === 'string' && TLS_CODES.test(code)) return true;
  if (typeof originalCode === 'string' && SQL_STATES.test(originalCode)) return true;
  if (typeof kind === 'string' && DRIVER_KINDS.has(kind)) return true;
  if (typeof message === 'string' && PG_MESSAGES.test(message)) return true;
  const adapterError = (meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError;
  return isDatabaseUnavailable(cause, depth + 1) || isDatabaseUnavailable(adapterError, depth + 1);
}

/**
 * Repeats a statement while PostgreSQL is unavailable.
 * @param until when it gives up, in the time of `performance.now()`
 * @throws the error with which it gives up.
 */
export async function patiently<T>(until: number, pauseMs: number, statement: () => PromiseLike<T>): Promise<T> {
  for (;;) {
    try {
      return await statement();
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() + pauseMs > until) throw error;
      await delay(pauseMs);
    }
  }
}
