import type { ClaimRequest } from '@callplane/core';
import { claimGated, LATE_MS, type DueClaim, type DueRequest, type GatedClaim, type TypedSql } from '@callplane/db';
import type { Beginnings } from './beginnings.js';
import type { OpenClaims } from './open-claims.js';

type GatedOrNot = Pick<DueClaim, 'claimed' | 'isGated'>;

/** Low-water mark of one endpoint and kind. Claims skip rows that were due before it. */
interface Mark {
  since: Date;
  /** When a claim last read from the beginning of the endpoint, which also finds rows before the mark. */
  fromStartAtMs: number;
}

/** Interval of claims that ignore the mark, in milliseconds. They find rows that another transaction had locked. */
const FROM_START_EVERY_MS = 5000;
const MARKS_MAX = 20_000;
/** Endpoints that are remembered as gated. Beyond it, a claim of the first statement finds out again. */
const GATED_MAX = 20_000;

/** Claimed deliveries, and whether and when to claim more. */
export interface Claim extends Pick<GatedClaim, 'claimed' | 'nextInMs' | 'isPaced' | 'isMore' | 'pause'> {
  /** When its own statement was answered. Other claims of the round may take longer. */
  readonly answeredAtMs: number;
}

export interface ClaimsSettings {
  /** Where claims without a mark begin. */
  beginnings: Beginnings;
  openClaims: OpenClaims;
  /** For claims of gated endpoints. */
  sql: TypedSql;
  leaseMs: number;
  /** Reports the first failure of a round in which other claims succeeded. */
  onFailed: (error: unknown) => void;
}

/**
 * Claims due deliveries by endpoint, and keeps a low-water mark for each endpoint: the due time of the newest claimed
 * row, but at least LATE_MS ago, because rows with an earlier due time may still become visible. Without it, a claim
 * would read past every delivery that was claimed since the oldest open transaction began, for example a backup.
 */
export class Claims {
  readonly #settings: ClaimsSettings;
  readonly #marks = new Map<string, Mark>();
  /** Endpoints with an order or a limit. The row decides at every claim; this only saves a statement. */
  readonly #gated = new Set<string>();

  constructor(settings: ClaimsSettings) {
    this.#settings = settings;
  }

  /**
   * Claims the deliveries of all endpoints without a gate with one statement, and those of each gated endpoint with a
   * statement of its own. A statement that fails does not affect the others, whose claims are committed.
   * @param onAnswer called with the result of each request as soon as its own statement is answered.
   * @returns the requests whose statements failed.
   * @throws if all statements failed.
   */
  async claim(
    requests: readonly ClaimRequest[],
    nowMs: number,
    onAnswer: (request: ClaimRequest, claim: Claim) => void,
  ): Promise<ClaimRequest[]> {
    const isGated = ({ endpointId }: ClaimRequest): boolean => this.#gated.has(endpointId);
    const gatedIds = new Set(requests.filter(isGated).map(({ endpointId }) => endpointId));
    const open = requests.filter((request) => !isGated(request));
    const answered = new Set<ClaimRequest>();
    const answer = (request: ClaimRequest, claim: Claim): void => {
      answered.add(request);
      onAnswer(request, claim);
    };
    const settled = await Promise.allSettled([
      this.#claimOpen(open, nowMs, answer),
      // The two kinds of an endpoint one after the other, because they share its gate.
      ...[...gatedIds].map(async (id) => {
        const kinds = requests.filter(({ endpointId }) => endpointId === id);
        for (const request of kinds) answer(request, await this.#claimGated(request, nowMs));
      }),
    ]);
    const failure = settled.find((result) => result.status === 'rejected');
    if (failure !== undefined) {
      if (answered.size === 0) throw failure.reason;
      this.#settings.onFailed(failure.reason);
    }
    return requests.filter((request) => !answered.has(request));
  }

  async #claimOpen(
    requests: readonly ClaimRequest[],
    nowMs: number,
    answer: (request: ClaimRequest, claim: Claim) => void,
  ): Promise<void> {
    if (requests.length === 0) return;
    const asked = requests.map((request) => this.#asked(request, nowMs));
    const results = await this.#settings.openClaims.claim(asked);
    const answeredAtMs = performance.now();
    for (const [index, request] of requests.entries()) {
      const result = results[index] as DueClaim;
      // The next claim of the endpoint goes through its gate.
      if (result.isGated) this.#noteGated(request.endpointId);
      this.#noteClaimed(request, result, nowMs);
      answer(request, { ...result, isPaced: false, isMore: result.isGated, pause: null, answeredAtMs });
    }
  }

  async #claimGated(request: ClaimRequest, nowMs: number): Promise<Claim> {
    const { sql, leaseMs } = this.#settings;
    const gated = await claimGated(sql, this.#asked(request, nowMs), leaseMs);
    const claim = { ...gated, answeredAtMs: performance.now() };
    this.#noteClaimed(request, claim, nowMs);
    if (claim.isGated) return claim;
    this.#gated.delete(request.endpointId);
    return { ...claim, isMore: true };
  }

  #asked({ endpointId, kind, count }: ClaimRequest, nowMs: number): DueRequest {
    const mark = this.#marks.get(`${endpointId} ${kind}`);
    const isFromStart = mark === undefined || nowMs - mark.fromStartAtMs >= FROM_START_EVERY_MS;
    if (mark !== undefined && isFromStart) mark.fromStartAtMs = nowMs;
    const since = isFromStart ? this.#settings.beginnings.of(endpointId, kind) : mark.since;
    return { endpointId, isRetry: kind === 'retry', count, since };
  }

  #noteGated(endpointId: string): void {
    if (this.#gated.size >= GATED_MAX) this.#gated.clear();
    this.#gated.add(endpointId);
  }

  #noteClaimed({ endpointId, kind }: ClaimRequest, { claimed, isGated }: GatedOrNot, nowMs: number): void {
    const newest = claimed.at(-1);
    if (newest === undefined) return;
    const lateAtMs = newest.startedAt.getTime() - LATE_MS;
    // A claim of an endpoint with an order leaves rows that are older than those that it takes.
    const sinceMs = isGated ? newest.dueAt.getTime() - LATE_MS : Math.min(newest.dueAt.getTime(), lateAtMs);
    this.#note(`${endpointId} ${kind}`, new Date(sinceMs), nowMs);
  }

  /** Makes the next claim of the endpoint ignore its mark. Call it if there may be due rows before the mark. */
  forget(endpointId: string): void {
    this.#marks.delete(`${endpointId} first`);
    this.#marks.delete(`${endpointId} retry`);
  }

  #note(key: string, since: Date, nowMs: number): void {
    const mark = this.#marks.get(key);
    if (mark !== undefined) mark.since = since;
    else {
      if (this.#marks.size >= MARKS_MAX) this.#marks.clear();
      this.#marks.set(key, { since, fromStartAtMs: nowMs });
    }
  }
}
