import {
  patiently,
  releaseDeliveries,
  settleDeliveries,
  type ClaimedDelivery,
  type EndedAttempt,
  type TypedSql,
  type SettledDelivery,
} from '@callplane/db';
import { Batches, ONE_QUEUE, type Logger } from '@callplane/runtime';

/** How long to retry settling and releasing while PostgreSQL is unavailable, and the pause between tries, in milliseconds. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 250;

const SETTLED_AT_ONCE_MAX = 64;

interface Waiting {
  ended: EndedAttempt;
  until: number;
}

/**
 * Writes the outcomes of attempts. Outcomes that come while a commit waits for the disk share the next statement; a
 * lone one waits for nothing.
 */
export class Settling {
  readonly #batches: Batches<Waiting, SettledDelivery | null>;

  constructor(
    private readonly db: TypedSql,
    private readonly logger: Logger,
  ) {
    this.#batches = new Batches({ run: (_key, batch) => this.#settleAll(batch), sizeMax: SETTLED_AT_ONCE_MAX });
  }

  /**
   * Settles an attempt, and retries even after the lease has expired: the answer of the receiver counts until another
   * worker claims the row.
   * @returns null if nothing was written, because the lease was lost or PostgreSQL stayed unavailable.
   */
  settle(ended: EndedAttempt): Promise<SettledDelivery | null> {
    return this.#batches.add(ONE_QUEUE, { ended, until: performance.now() + PATIENCE_MS });
  }

  /**
   * Releases claimed deliveries that were not sent, and retries while PostgreSQL is unavailable: otherwise they would
   * wait for the end of their leases.
   */
  async release(claims: readonly Pick<ClaimedDelivery, 'id' | 'leaseToken'>[], delayMs = 0): Promise<void> {
    try {
      await patiently(performance.now() + PATIENCE_MS, PAUSE_MS, () => releaseDeliveries(this.db, claims, delayMs));
    } catch (error) {
      this.logger.error('deliveries not released', { deliveryIds: claims.map(({ id }) => id), error });
    }
  }

  async #settleAll(batch: readonly Waiting[]): Promise<(SettledDelivery | null | Promise<SettledDelivery | null>)[]> {
    const settled = await this.#write(batch);
    return batch.map((one) => {
      const rowIn = (rows: typeof settled) => rows?.get(keyOf(one.ended.claim)) ?? null;
      const row = rowIn(settled);
      // Retries each one alone: its row may have been locked only for a moment, and one failure must not affect others.
      return row === null && batch.length > 1 ? this.#write([one]).then(rowIn) : row;
    });
  }

  /** Returns the settled rows by {@link keyOf}, or null if the batch cannot be settled. */
  async #write(batch: readonly Waiting[]): Promise<Map<string, SettledDelivery> | null> {
    const ended = batch.map((one) => one.ended);
    try {
      const until = Math.min(...batch.map((one) => one.until));
      const rows = await patiently(until, PAUSE_MS, () => settleDeliveries(this.db, ended));
      return new Map(rows.map((row) => [keyOf(row), row]));
    } catch (error) {
      // A batch of several is not logged here, because each attempt is tried again alone.
      const [one] = batch;
      if (batch.length === 1) this.logger.error('delivery not settled', { deliveryId: one?.ended.claim.id, error });
      return null;
    }
  }
}

const keyOf = ({ id, leaseToken }: SettledDelivery): string => `${id} ${leaseToken}`;
