import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** PostgreSQL: serialization failure, deadlock. The transaction has changed nothing. */
const STATES = new Set(['40001', '40P01']);
/** Prisma's names of both. */
const PRISMA_CODE = 'P2034';
const DRIVER_KIND = 'TransactionWriteConflict';

const TRIES_MAX = 5;
/** Longest pause before the second try, in milliseconds. It doubles with each try. */
const PAUSE_MS = 10;

/**
 * Repeats a statement or a transaction that PostgreSQL has ended in favour of another one, at most four times.
 * @param work begins from the start whenever it is called.
 * @throws the error of the last try.
 */
export async function repeatConflicts<T>(work: () => PromiseLike<T>, onRepeat: () => void): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === TRIES_MAX || !isConflict(error)) throw error;
      onRepeat();
      await delay(randomInt(PAUSE_MS * 2 ** (tries - 1)));
    }
  }
}

/** Looks through Prisma's wrappers down to the driver's own error. */
function isConflict(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > 6) return false;
  const { code, originalCode, kind, cause, meta } = error as Record<string, unknown>;
  if (STATES.has(String(code)) || STATES.has(String(originalCode))) return true;
  if (code === PRISMA_CODE || kind === DRIVER_KIND) return true;
  const adapterError = (meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError;
  return isConflict(cause, depth + 1) || isConflict(adapterError, depth + 1);
}
