import { CLOCK_DIFFERENCE_MS_MAX, type Clock } from '@callplane/core';
import type { ClientBase } from 'pg';
import type { Target } from './connection-config.js';
import type { TypedSql } from './sql.js';
import { UnfitServerError } from './unavailable.js';

export interface SessionDeadlines {
  /** Until PostgreSQL cancels a statement, in milliseconds. */
  readonly statementMs: number;
  /** Until a transaction must end, and for how long PostgreSQL lets it be idle, in milliseconds. */
  readonly transactionMs: number;
}

export interface SessionWishes {
  /**
   * Commits do not wait for the disk. Use it for statements that PostgreSQL may lose in a crash without losing accepted
   * work, such as claims. Reads stay consistent.
   */
  readonly asynchronousCommit?: boolean;
  /**
   * Disables sequential scans in query plans. For a process whose every statement has an index: PostgreSQL would
   * otherwise keep a sequential scan that it planned for a small table, while the table grows, until it next analyses
   * the table.
   */
  readonly indexesOnly?: boolean;
}

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

/**
 * The names of UTC in the time zone database, in lower case. Not by offset: Europe/London has none in winter. A pooler
 * may set the session to another of these names than the app.
 */
const UTC_NAMES = new Set(['utc', 'etc/utc', 'uct', 'etc/uct', 'zulu', 'etc/zulu', 'universal', 'etc/universal']);

const SESSION_STATE = `
  SELECT current_setting('TimeZone') AS "timeZone", current_setting('transaction_read_only') = 'on' AS "isReadOnly"`;

/**
 * Resolves when the session accepts writes, and returns timestamps in UTC.
 * @throws UnfitServerError if it is read-only, or in another time zone: a pooler between may drop our options.
 */
export async function checkSession(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ timeZone: string; isReadOnly: boolean }>(SESSION_STATE);
  if (rows[0]?.isReadOnly !== false) throw new UnfitServerError('read-only');
  if (!UTC_NAMES.has(rows[0].timeZone.toLowerCase())) throw new UnfitServerError('time-zone');
}

/**
 * @param name of the process, `callplane <app> <instance>`; with a wrong clock, the connection is called
 *   `callplane!<seconds ahead> <app> <instance>`. Null leaves the connection as it is.
 * @returns how far the clock is ahead of PostgreSQL's at least, in milliseconds.
 */
export async function compareClock(client: ClientBase, clock: Clock, name: string | null): Promise<number> {
  const beforeMs = clock.now().getTime();
  const { rows } = await client.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  const afterMs = clock.now().getTime();
  const differenceMs = (beforeMs + afterMs) / 2 - (rows[0]?.now ?? new Date(NaN)).getTime();
  // PostgreSQL has read its clock at any time in between.
  const aheadMs = Math.sign(differenceMs) * Math.max(0, Math.abs(differenceMs) - (afterMs - beforeMs) / 2);
  const isWrong = Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS_MAX;
  if (name !== null) {
    const marked = name.replace(/^callplane /, `callplane!${Math.round(aheadMs / 1000)} `);
    await client.query(`SELECT set_config('application_name', $1, false)`, [isWrong ? marked : name]);
  }
  return aheadMs;
}

/**
 * Resolves when a write has got through: PostgreSQL accepts writes, and commits do not wait for a standby. The write is
 * a message in PostgreSQL's log of changes, and leaves no row behind.
 */
export async function probeWrite(db: TypedSql): Promise<void> {
  await db.$queryRaw`SELECT pg_logical_emit_message(true, 'callplane', 'probe')::text`;
}
