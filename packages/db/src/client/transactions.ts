import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inTime } from '@callplane/core';
import type pg from 'pg';
import { stateOf, TransactionLateError } from './unavailable.js';

/** PostgreSQL: serialization failure, deadlock. The transaction has changed nothing. */
const CONFLICTS = new Set(['40001', '40P01']);
const TRIES_MAX = 5;
/** Longest pause before the second try, in milliseconds. It doubles with each try. */
const PAUSE_MS = 10;

/** Runs a statement or a transaction until it has no conflict with another one. */
export type Repeat = <T>(work: () => PromiseLike<T>) => Promise<T>;

/**
 * Repeats work that PostgreSQL has ended in favour of another transaction, at most four times.
 * @param onRepeat called before each repetition.
 * @returns a function that begins its work from the start at each try, and throws the error of the last one.
 */
export function repeatConflicts(onRepeat: () => void): Repeat {
  return async (work) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (tries === TRIES_MAX || !CONFLICTS.has(stateOf(error))) throw error;
        onRepeat();
        await delay(randomInt(PAUSE_MS * 2 ** (tries - 1)));
      }
    }
  };
}

/**
 * Runs `work` in one transaction, with the isolation of the session (`SESSION_SETTINGS`). It commits all writes or none.
 * @param begin the statement that begins it.
 * @param milliseconds until `work` must be over: then the transaction is rolled back.
 */
export async function runTransaction<T>(
  pool: pg.Pool,
  { begin, milliseconds }: { begin: string; milliseconds: number },
  work: (client: pg.PoolClient, check: () => void) => PromiseLike<T>,
): Promise<T> {
  const client = await pool.connect();
  let isOver = false;
  let lost: Error | undefined;
  const check = (): void => {
    // The statement would run outside of the transaction.
    if (isOver) throw new Error('the transaction is over');
  };
  try {
    await client.query(begin);
    const result = await inTime(work(client, check), milliseconds, () => new TransactionLateError(milliseconds));
    isOver = true;
    await client.query('COMMIT');
    return result;
  } catch (error) {
    isOver = true;
    // A transaction that is late may still run a statement: only closing its connection ends both.
    if (error instanceof TransactionLateError) lost = error;
    else await client.query('ROLLBACK').catch((failure: unknown) => (lost = failure as Error));
    throw error;
  } finally {
    client.release(lost);
  }
}
