import type { ClaimRequest } from '@callplane/core';
import { claimDueDeliveries, type DueClaim, type TypedSql } from '@callplane/db';

/** Low-water mark of one endpoint and kind. Claims skip rows that were due before it. */
interface Mark {
  since: Date;
  /** When a claim last read from the first row on, which also finds rows before the mark. */
  fromStartAtMs: number;
}

/**
 * Distance of the mark from the due time of the newest claimed row, in milliseconds. A row with an earlier due time may
 * still become visible: a row is due from the start of its transaction, which may take 15 s until its commit, and a
 * claim skips a row that another transaction has locked, equally long.
 */
const LATE_MS = 20_000;
/** Interval of claims that ignore the mark, in milliseconds. They find rows that appeared even later. */
const FROM_START_EVERY_MS = 5000;
const MARKS_MAX = 20_000;

/**
 * Claims due deliveries by endpoint, and keeps a low-water mark for each endpoint. Without it, a claim would read past
 * every delivery that was claimed since the oldest open transaction began, for example a backup.
 */
export class Claims {
  readonly #db: TypedSql;
  readonly #leaseMs: number;
  readonly #marks = new Map<string, Mark>();

  constructor(db: TypedSql, leaseMs: number) {
    this.#db = db;
    this.#leaseMs = leaseMs;
  }

  /** Returns one result per request, in the same order. */
  async claim(requests: readonly ClaimRequest[], nowMs: number): Promise<DueClaim[]> {
    const claims = await claimDueDeliveries(
      this.#db,
      requests.map(({ endpointId, kind, count }) => {
        const mark = this.#marks.get(`${endpointId} ${kind}`);
        const isFromStart = mark === undefined || nowMs - mark.fromStartAtMs >= FROM_START_EVERY_MS;
        if (mark !== undefined && isFromStart) mark.fromStartAtMs = nowMs;
        return { endpointId, isRetry: kind === 'retry', count, since: isFromStart ? null : mark.since };
      }),
      this.#leaseMs,
    );
    for (const [index, { endpointId, kind }] of requests.entries()) {
      const newest = claims[index]?.claimed.at(-1);
      if (newest !== undefined) this.#note(`${endpointId} ${kind}`, newest.dueAt, nowMs);
    }
    return claims;
  }

  /** Makes the next claim of the endpoint ignore its mark. Call it if there may be due rows before the mark. */
  forget(endpointId: string): void {
    this.#marks.delete(`${endpointId} first`);
    this.#marks.delete(`${endpointId} retry`);
  }

  #note(key: string, dueAt: Date, nowMs: number): void {
    const since = new Date(dueAt.getTime() - LATE_MS);
    const mark = this.#marks.get(key);
    if (mark !== undefined) mark.since = since;
    else {
      if (this.#marks.size >= MARKS_MAX) this.#marks.clear();
      this.#marks.set(key, { since, fromStartAtMs: nowMs });
    }
  }
}
