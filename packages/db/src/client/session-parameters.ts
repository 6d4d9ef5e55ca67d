import type { Target } from './connection-config.js';

interface SessionDeadlines {
  /** Until PostgreSQL cancels a statement, in milliseconds. */
  readonly statementMs: number;
  /** For how long PostgreSQL lets a transaction be idle, in milliseconds. */
  readonly transactionMs: number;
}

interface SessionWishes {
  readonly asynchronousCommit?: boolean;
  readonly indexesOnly?: boolean;
}

/** Parameters of a session that belongs to one connection. */
export function ownSession(
  { options }: Target,
  wishes: SessionWishes,
  { statementMs, transactionMs }: SessionDeadlines,
) {
  return {
    // Timeouts on both sides: PostgreSQL cancels slow statements, and the client gives up on a frozen server.
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: transactionMs,
    // Prisma's adapter writes and reads timestamps without a time zone and assumes that the session uses UTC.
    options: [
      ...(options === '' ? [] : [options]),
      '-c TimeZone=UTC',
      ...(wishes.asynchronousCommit === true ? ['-c synchronous_commit=off'] : []),
      ...(wishes.indexesOnly === true ? ['-c enable_seqscan=off'] : []),
    ].join(' '),
  };
}

/** A pooler refuses or drops parameters that it does not know, so only those of the operator are sent. */
export function pooledSession({ options }: Target) {
  return options === '' ? {} : { options };
}

/** One message, so that no transaction is without deadlines. */
export function beginWithDeadlines({ statementMs, transactionMs }: SessionDeadlines): string {
  return (
    `BEGIN; SET LOCAL statement_timeout = ${statementMs};` +
    ` SET LOCAL idle_in_transaction_session_timeout = ${transactionMs}`
  );
}
