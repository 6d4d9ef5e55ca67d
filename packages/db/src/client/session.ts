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
   * Disables sequential scans in query plans. For a process whose every statement has an index: PostgreSQL would
   * otherwise keep a sequential scan that it planned for a small table, while the table grows, until it next analyses
   * the table.
   */
  readonly indexesOnly?: boolean;
}

/** The settings that the product relies on, whatever the server, the database and the role have set. */
export const SESSION_SETTINGS = {
  // Prisma's adapter writes and reads timestamps without a time zone and assumes that the session uses UTC.
  TimeZone: 'UTC',
  // node-postgres reads dates, intervals, bytes and floating-point numbers in these forms.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  // Statements skip locked rows and compare versions instead of failing.
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  // Statements have the deadline of the app, and its connections may be idle.
  lock_timeout: '0',
  idle_session_timeout: '0',
} as const;

/** The tables are in this schema. The `options` of the URL come after it. */
const SCHEMA = 'public';

const option = (name: string, value: string): string => `-c ${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`;

export function ownSession(
  { options }: Target,
  wishes: SessionWishes,
  { statementMs, transactionMs }: SessionDeadlines,
) {
  return {
    // Timeouts on both sides: PostgreSQL cancels slow statements, and the client gives up on a frozen server.
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: transactionMs,
    options: [
      option('search_path', SCHEMA),
      ...(options === '' ? [] : [options]),
      ...Object.entries(SESSION_SETTINGS).map(([name, value]) => option(name, value)),
      ...(wishes.indexesOnly === true ? ['-c enable_seqscan=off'] : []),
    ].join(' '),
  };
}

/** A pooler refuses or drops parameters that it does not know, so only the operator's parameters are sent. */
export function pooledSession({ options }: Target) {
  return options === '' ? {} : { options };
}

/** One message, so that no transaction is without deadlines. Other settings come from the database. */
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

const NAMES = Object.keys(SESSION_SETTINGS);

const SESSION_STATE = `
  SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    ${NAMES.map((name) => `current_setting('${name}') AS "${name}"`).join(', ')}`;

/**
 * Resolves when the session accepts writes, and has the settings that the product relies on.
 * @throws UnfitServerError if it is read-only, or a setting differs: a pooler between may drop our options.
 */
export async function checkSession(client: ClientBase): Promise<void> {
  const { rows } = await client.query<Record<string, unknown>>(SESSION_STATE);
  const state = rows[0] ?? {};
  if (state['isReadOnly'] !== false) throw new UnfitServerError('read-only');
  const { TimeZone: _, DateStyle, ...others } = SESSION_SETTINGS;
  if (!UTC_NAMES.has(String(state['TimeZone']).toLowerCase())) throw new UnfitServerError('time-zone');
  // The order of day and month concerns input only, and all input is in ISO's order.
  const isIso = String(state['DateStyle']).startsWith(DateStyle.slice(0, 4));
  if (!isIso || Object.entries(others).some(([name, value]) => state[name] !== value)) {
    throw new UnfitServerError('session');
  }
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
