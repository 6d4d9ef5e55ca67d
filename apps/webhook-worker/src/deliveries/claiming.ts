import { claimDeliveries, claimDelivery, type ClaimedDelivery, type TypedSql } from '@callplane/db';
import { Batches } from './batches.js';

interface Asked {
  deliveryId: string;
  leaseToken: string;
}

/** Claims deliveries, those of slots that come free together in one statement. */
export class Claiming {
  readonly #batches: Batches<Asked, ClaimedDelivery | null>;

  constructor(db: TypedSql, leaseMs: number) {
    this.#batches = new Batches(
      async (batch) => {
        const claimed = new Map((await claimDeliveries(db, batch, leaseMs)).map((row) => [row.id, row]));
        return batch.map((asked) => {
          const own = claimed.get(asked.deliveryId);
          if (own?.leaseToken === asked.leaseToken) return own;
          // Somebody may only have had it locked for a moment.
          return batch.length === 1 ? null : claimDelivery(db, asked.deliveryId, asked.leaseToken, leaseMs);
        });
      },
      { max: 16, lingerMs: 0 },
    );
  }

  /** Null when it is not due, held by another or settled, or its endpoint is disabled or deleted. */
  claim(asked: Asked): Promise<ClaimedDelivery | null> {
    return this.#batches.add(asked);
  }
}
