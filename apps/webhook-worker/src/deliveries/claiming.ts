import { claimDeliveries, type ClaimedDelivery, type TypedSql } from '@callplane/db';
import { Batches } from './batches.js';

interface Asked {
  deliveryId: string;
  leaseToken: string;
}

/** How long a claim waits for company, in milliseconds: slots have their next delivery claimed by then. */
const LINGER_MS = 1;

/** Claims deliveries, those of slots that come free together in one statement. */
export class Claiming {
  readonly #batches: Batches<Asked, ClaimedDelivery | null>;

  constructor(db: TypedSql, leaseMs: number) {
    this.#batches = new Batches(
      async (batch) => {
        const claimed = new Map((await claimDeliveries(db, batch, leaseMs)).map((row) => [row.id, row]));
        const results: (ClaimedDelivery | null)[] = [];
        for (const asked of batch) {
          const own = claimed.get(asked.deliveryId);
          if (own?.leaseToken === asked.leaseToken) results.push(own);
          // Somebody may only have had it locked for a moment.
          else results.push(batch.length === 1 ? null : ((await claimDeliveries(db, [asked], leaseMs))[0] ?? null));
        }
        return results;
      },
      { max: 16, lingerMs: LINGER_MS },
    );
  }

  /** Null when it is not due, held by another or settled, or its endpoint is disabled or deleted. */
  claim(asked: Asked): Promise<ClaimedDelivery | null> {
    return this.#batches.add(asked);
  }
}
