import { setTimeout as delay } from 'node:timers/promises';
import {
  isDatabaseUnavailable,
  settleDeliveries,
  type EndedAttempt,
  type TypedSql,
  type WakeableDelivery,
} from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import { Batches } from './batches.js';

/** For how long a result is tried to be settled while PostgreSQL is away, and the pause between, in milliseconds. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 250;

/** How long a result waits for company, in milliseconds. No slot waits for it. */
const LINGER_MS = 4;

interface Waiting {
  ended: EndedAttempt;
  until: number;
}

/** Writes down what attempts came to: those that end while a commit waits for the disk share the next. */
export class Settling {
  readonly #db: TypedSql;
  readonly #logger: Logger;
  readonly #batches: Batches<Waiting, WakeableDelivery | null>;

  constructor(db: TypedSql, logger: Logger) {
    this.#db = db;
    this.#logger = logger;
    this.#batches = new Batches((batch) => this.#settleAll(batch), { max: 64, lingerMs: LINGER_MS });
  }

  /**
   * The receiver has answered: this is worth patience, also past the lease, because as long as nobody has taken the row
   * over the answer still counts.
   * @returns null when the lease was lost, or PostgreSQL stayed away.
   */
  settle(ended: EndedAttempt): Promise<WakeableDelivery | null> {
    return this.#batches.add({ ended, until: performance.now() + PATIENCE_MS });
  }

  async #settleAll(batch: readonly Waiting[]): Promise<(WakeableDelivery | null | Promise<WakeableDelivery | null>)[]> {
    const settled = await this.#patiently(batch);
    return batch.map((one) => {
      const row = settled?.get(one.ended.claim.id) ?? null;
      // Alone, because somebody may only have had it locked for a moment, and none fails for another's sake.
      return row === null && batch.length > 1 ? this.#settleAlone(one) : row;
    });
  }

  async #settleAlone(one: Waiting): Promise<WakeableDelivery | null> {
    return (await this.#patiently([one]))?.get(one.ended.claim.id) ?? null;
  }

  /** Null when it cannot be settled. */
  async #patiently(batch: readonly Waiting[]): Promise<Map<string, WakeableDelivery> | null> {
    for (;;) {
      try {
        const rows = await settleDeliveries(
          this.#db,
          batch.map(({ ended }) => ended),
        );
        return new Map(rows.map((row) => [row.id, row]));
      } catch (error) {
        const isPassing = isDatabaseUnavailable(error);
        if (!isPassing || batch.some(({ until }) => performance.now() + PAUSE_MS > until)) {
          // Several are tried once more one by one.
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
