import { KeyedPace, paceTimes, type Pace, type PaceTimes } from '@callplane/core';
import type { Logger } from '@callplane/runtime';
import { LRUCache } from 'lru-cache';
import type { Client } from '../clients/client.js';
import type { ArrivalLimit, SignalingMetrics } from '../metrics.js';

export interface ArrivalPaces {
  joins: Pace;
  resumptions: Pace;
  failures: Pace;
}

const KEYS_MAX = 10_000;
const LOG_EVERY_MS = 1000;

/**
 * PostgreSQL keeps the pace of participants and sessions, because it holds across all instances. This instance keeps the
 * pace of client addresses, and how long PostgreSQL refuses a participant or session: further attempts cost no query.
 */
export class ArrivalLimits {
  readonly joins: PaceTimes;
  readonly resumptions: PaceTimes;
  readonly #failures: KeyedPace;
  /** Tests of the line by participant: at this instance, at the pace of joins. */
  readonly #tests: KeyedPace;
  readonly #metrics: Pick<SignalingMetrics, 'limited'>;
  readonly #logger: Logger;
  /** By participant or session id: the monotonic time until which PostgreSQL refuses it. */
  readonly #refusedUntilMs = new LRUCache<string, number>({ max: KEYS_MAX });
  readonly #loggedAtMs = new Map<ArrivalLimit, number>();

  constructor(
    paces: ArrivalPaces,
    { metrics, logger }: { metrics: Pick<SignalingMetrics, 'limited'>; logger: Logger },
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {
    this.joins = paceTimes(paces.joins);
    this.resumptions = paceTimes(paces.resumptions);
    this.#failures = new KeyedPace(paceTimes(paces.failures), KEYS_MAX);
    this.#tests = new KeyedPace(this.joins, KEYS_MAX);
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /** How long resumptions and bad tokens from this address are refused, in milliseconds; 0 if they are not. */
  addressWaitMs({ addressKey }: Pick<Client, 'addressKey'>): number {
    return this.#failures.waitMs(addressKey, this.monotonicMs());
  }

  failed({ addressKey }: Pick<Client, 'addressKey'>): void {
    this.#failures.charge(addressKey, this.monotonicMs());
  }

  /** How long PostgreSQL is known to refuse a participant or session, in milliseconds; 0 if it is not known to. */
  waitMs(id: string): number {
    return Math.max(0, (this.#refusedUntilMs.get(id) ?? -Infinity) - this.monotonicMs());
  }

  /** Counts a test of the line. @returns how long it is refused, in milliseconds; 0 if it is not */
  takeTest(participantId: string): number {
    const nowMs = this.monotonicMs();
    const waitMs = this.#tests.waitMs(participantId, nowMs);
    if (waitMs === 0) this.#tests.charge(participantId, nowMs);
    return waitMs;
  }

  refuseFor(id: string, waitMs: number): void {
    this.#refusedUntilMs.set(id, this.monotonicMs() + waitMs);
  }

  /** Ends the client and tells it how long to wait. Logs at most one line per second for each limit. */
  refuse(client: Client, limit: ArrivalLimit, waitMs: number): void {
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    client.close('too_many_attempts', { retryAfterSeconds, cause: `limit: ${limit}` });
    this.#metrics.limited(limit);
    const nowMs = this.monotonicMs();
    if (nowMs - (this.#loggedAtMs.get(limit) ?? -Infinity) < LOG_EVERY_MS) return;
    this.#loggedAtMs.set(limit, nowMs);
    this.#logger.warn('arrival refused', {
      connectionId: client.id,
      ...client.logFields,
      limit,
      retryAfterSeconds,
    });
  }
}
