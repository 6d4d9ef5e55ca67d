import { claimDueDeliveries, REQUEST_COUNT_MAX, type DueClaim, type DueRequest, type TypedSql } from '@callplane/db';
import { Batches, ONE_QUEUE } from '@callplane/runtime';

/** Requests per statement. */
const BATCH_MAX = 128;

/**
 * Claims of endpoints without a gate, of all workers of this process: requests that arrive while a claim is running
 * share the next statement.
 */
export class OpenClaims {
  readonly #batches: Batches<DueRequest, DueClaim>;

  constructor(db: TypedSql, leaseMs: number) {
    this.#batches = new Batches({
      sizeMax: BATCH_MAX,
      run: (_key, requests) => this.#claimAll(db, requests, leaseMs),
    });
  }

  /** @returns one result for each request, in the same order. */
  claim(requests: readonly DueRequest[]): Promise<DueClaim[]> {
    return Promise.all(requests.map((request) => this.#add(request)));
  }

  #add(request: DueRequest): Promise<DueClaim> {
    return this.#batches.add(ONE_QUEUE, request);
  }

  async #claimAll(
    db: TypedSql,
    requests: readonly DueRequest[],
    leaseMs: number,
  ): Promise<(DueClaim | Promise<DueClaim>)[]> {
    const { merged, rest } = mergeRequests(requests);
    const asked = merged.map(({ request }) => request);
    const claims = await claimDueDeliveries(db, asked, leaseMs);
    const results = new Map<DueRequest, DueClaim | Promise<DueClaim>>();
    for (const [index, { sharers }] of merged.entries()) {
      const parts = splitClaim(claims[index] as DueClaim, sharers);
      for (const [of, sharer] of sharers.entries()) results.set(sharer, parts[of] as DueClaim);
    }
    for (const request of rest) results.set(request, this.#add(request));
    return requests.map((request) => results.get(request) as DueClaim | Promise<DueClaim>);
  }
}

interface MergedRequest {
  request: DueRequest;
  /** The requests that it stands for. */
  sharers: DueRequest[];
}

/**
 * Merges requests of several workers for the same endpoint and kind, because one statement would lock the same rows for
 * each of them. `rest` exceeds the count that one request may have.
 */
export function mergeRequests(requests: readonly DueRequest[]): { merged: MergedRequest[]; rest: DueRequest[] } {
  const byKey = new Map<string, MergedRequest>();
  const rest: DueRequest[] = [];
  for (const request of requests) {
    const key = `${request.endpointId} ${request.isRetry}`;
    const merged = byKey.get(key);
    if (merged === undefined) byKey.set(key, { request, sharers: [request] });
    else if (merged.request.count + request.count > REQUEST_COUNT_MAX) rest.push(request);
    else {
      const { count, since } = merged.request;
      merged.request = { ...request, count: count + request.count, since: earliest(since, request.since) };
      merged.sharers.push(request);
    }
  }
  return { merged: [...byKey.values()], rest };
}

/** Gives the claimed deliveries to the requests in their order, to each at most its count. */
export function splitClaim(claim: DueClaim, sharers: readonly DueRequest[]): DueClaim[] {
  let from = 0;
  return sharers.map(({ count }) => {
    const claimed = claim.claimed.slice(from, from + count);
    from += count;
    return { ...claim, claimed };
  });
}

function earliest(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return null;
  return one < other ? one : other;
}
