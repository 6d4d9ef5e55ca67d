import { setTimeout as delay } from 'node:timers/promises';
import {
  isDatabaseUnavailable,
  logAttemptOfDeletedEndpoint,
  settleDeliveries,
  type EndedAttempt,
  type TypedSql,
  type SettledDelivery,
} from '@callplane/db';
import { Batches, ONE_QUEUE, type Logger } from '@callplane/runtime';

/** How long to retry settling while PostgreSQL is unavailable, and the pause between tries, in milliseconds. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 250;

/** How long a result waits at most for those of other running attempts, in milliseconds. No slot waits for it. */
const LINGER_MS = 10;
/** Maximum number of results in one statement. */
const SETTLED_AT_ONCE_MAX = 64;

interface Waiting {
  ended: EndedAttempt;
  until: number;
}

/**
 * Writes the outcomes of attempts. A result waits for the other attempts that are running, and those that end while a
 * commit waits for the disk share the next batch. So deliveries that were claimed together are settled together, and a
 * lone one waits for nothing.
 */
export class Settling {
  readonly #db: TypedSql;
  readonly #logger: Logger;
  readonly #batches: Batches<Waiting, SettledDelivery | null>;
  /** Attempts that are running. */
  #running = 0;
  #gathered: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(db: TypedSql, logger: Logger) {
    this.#db = db;
    this.#logger = logger;
    this.#batches = new Batches({
      run: (_key, batch) => this.#settleAll(batch),
      sizeMax: SETTLED_AT_ONCE_MAX,
    });
  }

  attemptBegins(): void {
    this.#running += 1;
  }

  /** Call it after `settle`, once the slot has been given to the next attempt. */
  attemptEnds(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#writeGathered();
  }

  /**
   * Settles an attempt, and retries even after the lease has expired: the answer of the receiver counts until another
   * worker claims the row.
   * @param isUrgent whether another delivery may begin once this one is settled: then it waits for no other result.
   * @returns null if nothing was written, because the lease was lost or PostgreSQL stayed unavailable.
   */
  settle(ended: EndedAttempt, isUrgent = false): Promise<SettledDelivery | null> {
    const write = (): Promise<SettledDelivery | null> =>
      this.#batches.add(ONE_QUEUE, { ended, until: performance.now() + PATIENCE_MS });
    if (isUrgent || this.#running === 0) return write();
    return new Promise((resolve) => {
      this.#gathered.push(() => resolve(write()));
      this.#timer ??= setTimeout(() => this.#writeGathered(), LINGER_MS);
    });
  }

  #writeGathered(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const write of this.#gathered.splice(0)) write();
  }

  async #settleAll(batch: readonly Waiting[]): Promise<(SettledDelivery | null | Promise<SettledDelivery | null>)[]> {
    const settled = await this.#patiently(batch);
    return batch.map((one) => {
      const row = settled?.get(one.ended.claim.leaseToken) ?? null;
      if (row !== null) return row;
      // Retries each one alone: its row may have been locked only for a moment, and one failure must not affect others.
      return batch.length > 1 ? this.#settleAlone(one) : this.#logUnsettled(one);
    });
  }

  async #settleAlone(one: Waiting): Promise<SettledDelivery | null> {
    return (await this.#patiently([one]))?.get(one.ended.claim.leaseToken) ?? this.#logUnsettled(one);
  }

  /** Logs an attempt whose outcome was not written, if the deletion of its endpoint is the reason. */
  async #logUnsettled({ ended }: Waiting): Promise<null> {
    try {
      await logAttemptOfDeletedEndpoint(this.#db, ended);
    } catch (error) {
      this.#logger.error('delivery attempt not logged', { deliveryId: ended.claim.id, error });
    }
    return null;
  }

  /** Returns the settled rows by lease token, or null if the batch cannot be settled. */
  async #patiently(batch: readonly Waiting[]): Promise<Map<string, SettledDelivery> | null> {
    for (;;) {
      try {
        const rows = await settleDeliveries(
          this.#db,
          batch.map(({ ended }) => ended),
        );
        return new Map(rows.map((row) => [row.leaseToken, row]));
      } catch (error) {
        const isPassing = isDatabaseUnavailable(error);
        if (!isPassing || batch.some(({ until }) => performance.now() + PAUSE_MS > until)) {
          // A batch of several is not logged here, because each attempt is tried again alone.
          const [one] = batch;
          if (batch.length === 1)
            this.#logger.error('delivery not settled', { deliveryId: one?.ended.claim.id, error });
          return null;
        }
        await delay(PAUSE_MS);
      }
    }
  }
}
