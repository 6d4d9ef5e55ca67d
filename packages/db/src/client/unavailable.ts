/** Prisma: cannot reach, timed out, closed, pool exhausted, transaction not started, too many connections. */
const PRISMA_CODES = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2037']);
/**
 * PostgreSQL: shutting down, crashed, starting up, too many connections, statement took too long (somebody frozen holds
 * its row); class 08 is connection exceptions.
 */
const SQL_STATES = /^(08\w{3}|57P0[123]|57014|53300|25P03)$/;
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);
const DRIVER_KINDS = new Set(['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout', 'TooManyConnections']);
/** node-postgres gives no code to these. */
const PG_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed and is not queryable|Cannot use a pool after calling end)/;

/** A transaction was not over in time and is rolled back. */
export class TransactionLateError extends Error {
  constructor(milliseconds: number) {
    super(`the transaction was not over within ${milliseconds} ms`);
  }
}

/**
 * Whether an error means that PostgreSQL cannot be reached at the moment (the API answers 503, a worker tries again),
 * as against a statement that is wrong. Looks through Prisma's wrappers down to the driver's own error.
 */
export function isDatabaseUnavailable(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > 6) return false;
  if (error instanceof TransactionLateError) return true;
  const { code, originalCode, kind, message, cause, meta } = error as Record<string, unknown>;
  if (typeof code === 'string' && (PRISMA_CODES.has(code) || SQL_STATES.test(code) || SOCKET_CODES.has(code)))
    return true;
  if (typeof originalCode === 'string' && SQL_STATES.test(originalCode)) return true;
  if (typeof kind === 'string' && DRIVER_KINDS.has(kind)) return true;
  if (typeof message === 'string' && PG_MESSAGES.test(message)) return true;
  return (
    isDatabaseUnavailable(cause, depth + 1) ||
    (typeof meta === 'object' &&
      meta !== null &&
      isDatabaseUnavailable((meta as { driverAdapterError?: unknown }).driverAdapterError, depth + 1))
  );
}
