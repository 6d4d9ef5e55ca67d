import { LeaseLost, renewLease, type ClaimedOperation } from '@callplane/db';
import type { OperationDeps } from './kind.js';

/** Share of a lease after which it is renewed, and of the pause after a renewal that PostgreSQL did not answer. */
const RENEW_AFTER = 0.5;
const TRY_AGAIN_AFTER = 0.1;

/**
 * Renews the lease of an attempt that may take long, each time half of it is over.
 * @param isLong without it, nothing is renewed.
 * @returns a signal that aborts with {@link LeaseLost} when another worker may have the row; call `release` at the end
 */
export function keepLease(
  { database, leaseMs, logger }: Pick<OperationDeps, 'database' | 'leaseMs' | 'logger'>,
  claim: ClaimedOperation,
  isLong: boolean,
): { signal: AbortSignal; release: () => void } {
  const lost = new AbortController();
  if (!isLong) return { signal: lost.signal, release: () => undefined };
  let isOver = false;
  let timer: NodeJS.Timeout;
  let validUntilMs = performance.now() + leaseMs;
  const later = (share: number): void => {
    timer = setTimeout(() => void renew(), share * leaseMs);
  };
  const renew = async (): Promise<void> => {
    const beganMs = performance.now();
    let error: unknown;
    try {
      await renewLease(database.sql, claim, leaseMs);
      validUntilMs = beganMs + leaseMs;
    } catch (caught) {
      error = caught;
    }
    if (isOver) return;
    if (error === undefined) {
      later(RENEW_AFTER);
    } else if (error instanceof LeaseLost || performance.now() >= validUntilMs) {
      logger.warn('operation lease lost', { operationId: claim.id, kind: claim.kind, error });
      lost.abort(new LeaseLost(claim.id));
    } else {
      later(TRY_AGAIN_AFTER);
    }
  };
  later(RENEW_AFTER);
  const release = (): void => {
    isOver = true;
    clearTimeout(timer);
  };
  return { signal: lost.signal, release };
}
