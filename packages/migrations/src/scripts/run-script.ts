import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { stepsOf, type Step } from './steps.js';

/** How a migration waits for the locks of its tables, in milliseconds. */
export interface LockWaits {
  /** Until PostgreSQL gives up waiting for a lock. No request waits longer behind a migration. */
  readonly timeoutMs: number;
  /** Pause before the next attempt, in which requests to the table go on. */
  readonly pauseMs: number;
  /** From the first attempt that found busy locks until the migration fails. */
  readonly waitMsMax: number;
}

export const LOCK_WAITS: LockWaits = { timeoutMs: 2000, pauseMs: 3000, waitMsMax: 10 * 60_000 };

export interface ScriptOptions {
  readonly lockWaits: LockWaits;
  /** Receives a line for the operator when a script has to wait. */
  readonly report: (line: string) => void;
}

/** Other transactions held the locks of a migration for too long. The database has none of its changes. */
export class LocksBusyError extends Error {}

/** An arbitrary fixed number, held by the session that runs a script. The migration lock is held by another session. */
export const SCRIPT_LOCK_KEY = 0x63616c6d;

/** PostgreSQL: lock_not_available, deadlock_detected. */
const LOCKS_BUSY = new Set(['55P03', '40P01']);
/** Interval at which PostgreSQL checks that the migrator still runs, in milliseconds. */
const CLIENT_CHECK_MS = 1000;

/**
 * Runs the script of a migration: as one transaction, or step by step outside of one (docs/decisions/0035). Can be
 * repeated after a failure and after a kill, unless a transaction has committed.
 * @throws LocksBusyError
 */
export async function runScript(
  client: pg.ClientBase,
  { name, script }: { name: string; script: string },
  options: ScriptOptions,
): Promise<void> {
  const steps = stepsOf(script);
  await client.query('SET statement_timeout = 0');
  // Not every platform of PostgreSQL supports this setting.
  await client.query(`SET client_connection_check_interval = ${CLIENT_CHECK_MS}`).catch(() => undefined);
  await client.query('SELECT pg_advisory_lock($1)', [SCRIPT_LOCK_KEY]);
  try {
    if (steps === null) {
      await whileLocksAreBusy(client, name, options, () => runTransaction(client, script, options.lockWaits.timeoutMs));
    } else {
      for (const step of steps) {
        const report = (line: string): void => options.report(`${name}: ${line}`);
        await whileLocksAreBusy(client, name, options, () => runStep(client, step, report));
      }
    }
  } finally {
    // Fails if the connection is lost, which releases the lock as well.
    await client.query('SELECT pg_advisory_unlock($1)', [SCRIPT_LOCK_KEY]).catch(() => undefined);
  }
}

/** The statement that marks the only unfinished migration as committed, as part of its own transaction. */
const MARK = `UPDATE _prisma_migrations SET applied_steps_count = 1 WHERE finished_at IS NULL AND rolled_back_at IS NULL;`;

async function runTransaction(client: pg.ClientBase, script: string, lockTimeoutMs: number): Promise<void> {
  // Shadow databases have no such table.
  const { rows } = await client.query<{ found: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`,
  );
  await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs}`);
  try {
    // One message from the first lock to the commit, so that a migrator that stands still holds no lock.
    await client.query(`${script}\n;${rows[0]?.found === true ? MARK : ''} COMMIT`);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function runStep(client: pg.ClientBase, { kind, name, statement }: Step, report: (line: string) => void) {
  // A concurrent step waits for older transactions, but no request waits for it.
  await client.query('SET lock_timeout = 0');
  if (kind === 'validate constraint') {
    await client.query(statement);
    return;
  }
  const isValid = await findIndex(client, name);
  if (kind === 'build index' && isValid === true) return;
  if (isValid !== null) {
    report(`drops the index ${name}`);
    await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  }
  if (kind === 'drop index') return;
  report(`builds the index ${name}`);
  await client.query(statement);
}

/** Whether an index is valid; null if there is none. A build that was killed or failed leaves an invalid one. */
async function findIndex(client: pg.ClientBase, name: string): Promise<boolean | null> {
  const { rows } = await client.query<{ valid: boolean }>(
    'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)',
    [name],
  );
  return rows[0]?.valid ?? null;
}

/** Repeats `attempt` while it fails because of the locks of others. */
async function whileLocksAreBusy(
  client: pg.ClientBase,
  name: string,
  { lockWaits, report }: ScriptOptions,
  attempt: () => Promise<void>,
): Promise<void> {
  // Not the start of the first attempt: a step may build an index for an hour before a deadlock ends it.
  let busySinceMs: number | undefined;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (!LOCKS_BUSY.has((error as { code?: string }).code ?? '')) throw error;
      const nowMs = performance.now();
      busySinceMs ??= nowMs;
      const oldest = await oldestTransaction(client);
      if (nowMs - busySinceMs + lockWaits.pauseMs >= lockWaits.waitMsMax) {
        const minutes = lockWaits.waitMsMax / 60_000;
        throw new LocksBusyError(
          `Migration ${name} is not applied: other transactions have held its locks for ${minutes} minutes${oldest}. ` +
            'End them, or run "rtc db migrate" again later.',
          { cause: error },
        );
      }
      report(`${name}: its tables are locked${oldest}; tries again`);
      await delay(lockWaits.pauseMs);
    }
  }
}

async function oldestTransaction(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ pid: number; application: string; state: string; seconds: number }>(
    `SELECT pid, application_name AS application, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start)::int AS seconds
     FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
     ORDER BY xact_start LIMIT 1`,
  );
  const [oldest] = rows;
  if (oldest === undefined) return '';
  const { pid, application, state, seconds } = oldest;
  return `; the oldest transaction is that of process ${pid} (${application || 'no name'}, ${state}), for ${seconds} s`;
}
