import { DeliverySchedule, SLOW_FROM_MS, type ClaimRequest, type Kind, type Place } from '@callplane/core';
import {
  isDatabaseUnavailable,
  releaseDelivery,
  type ClaimedDelivery,
  type DueEndpoint,
  type SchedulableEndpoint,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { attemptDelivery, type Settled } from './attempt.js';
import { Claims, type Claim } from './claims.js';
import { EarliestTimer } from './earliest-timer.js';
import { startByMs, startOf, type Held } from './held.js';
import { RunningWork } from './running-work.js';

/** Pause of claims after a failed one, in milliseconds, so that PostgreSQL can recover. */
const CLAIM_PAUSE_MS = 500;
/** Maximum number of endpoints whose doorbells this worker rings again when it drains. */
const HANDED_OVER_MAX = 1000;

export interface SchedulerSettings {
  slots: number;
  /** Deliveries that are claimed ahead while all slots are taken. */
  ahead: number;
}

/**
 * One worker. Runs the schedule of `packages/core`: claims the deliveries that the schedule takes, sends them and
 * settles them. A delivery keeps its `Place` from the decision to claim it to the end of its attempt.
 */
export class Scheduler {
  readonly #deps: Deps;
  readonly #schedule: DeliverySchedule;
  readonly #claims: Claims;
  readonly #onSurplus: (endpoint: SchedulableEndpoint) => void;
  /** Wakes endpoints whose next retry is due or whose pause is over. */
  readonly #later = new EarliestTimer(() => {
    this.#schedule.wakeLaters(performance.now());
    this.#pump();
    return this.#schedule.nextLaterMs;
  });
  readonly #held = new Map<Place, Held>();
  readonly #work: RunningWork;
  #isClaiming = false;
  #isDraining = false;
  #pausedUntilMs = 0;

  /**
   * @param onSurplus called with an endpoint that waits while all slots of this worker are taken: another worker may
   *   have a free one. Called again and again while that is so.
   */
  constructor(deps: Deps, settings: SchedulerSettings, onSurplus: (endpoint: SchedulableEndpoint) => void) {
    this.#deps = deps;
    this.#onSurplus = onSurplus;
    this.#work = new RunningWork((error) => deps.logger.error('scheduler failed', { error }));
    this.#schedule = new DeliverySchedule(settings);
    const onFailed = (error: unknown): void => this.#pauseClaims(error);
    this.#claims = new Claims({ ...deps, sql: deps.database.sql, onFailed });
  }

  /** What this worker knows and does at present. */
  get schedule(): Pick<DeliverySchedule, 'endpoint' | 'hasFreePlace' | 'isReady' | 'knows' | 'load' | 'sending'> {
    return this.#schedule;
  }

  /** Wakes endpoints that may have due deliveries and whose rows have just been read. */
  wakeRead(endpoints: readonly SchedulableEndpoint[]): void {
    const nowMs = performance.now();
    for (const endpoint of endpoints) this.#schedule.learn(endpoint, nowMs);
    this.wake(endpoints.map(({ endpointId }) => endpointId));
  }

  /** Wakes known endpoints that may have due deliveries. */
  wake(endpointIds: readonly string[], kinds?: readonly Kind[]): void {
    if (this.#isDraining) return;
    for (const endpointId of endpointIds) this.#schedule.wake(endpointId, performance.now(), kinds);
    this.#pump();
  }

  /**
   * Wakes endpoints that a scan found.
   * @returns the endpoints that it woke: those that no doorbell had announced, unless the schedule is full.
   */
  wakeFound(endpoints: readonly DueEndpoint[]): DueEndpoint[] {
    if (this.#isDraining) return [];
    const nowMs = performance.now();
    const unannounced = endpoints.filter(({ endpointId }) => !this.#schedule.isReady(endpointId));
    const taken = unannounced.filter((endpoint) => this.#schedule.learn(endpoint, nowMs));
    for (const { endpointId, first, retry } of taken) {
      this.#claims.forget(endpointId);
      this.#schedule.wake(endpointId, nowMs, [
        ...(first ? ['first' as const] : []),
        ...(retry ? ['retry' as const] : []),
      ]);
    }
    this.#pump();
    return taken;
  }

  /**
   * Starts no more attempts, releases deliveries that are claimed but not sent, and waits for running attempts. Then it
   * rings the doorbells of the remaining endpoints for other workers.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#later.stop();
    this.#giveBackAll([...this.#held.keys()].filter(({ state }) => state === 'claimed'));
    await this.#work.ended();
    const rest = this.#schedule.readyIds.slice(0, HANDED_OVER_MAX).map((id) => ({ id, endpointId: id }));
    await this.#deps.producer.wakeDeliveries(rest);
  }

  /** Claims deliveries for free places, one statement at a time. Places that become free meanwhile share the next. */
  #pump(): void {
    if (this.#isClaiming || this.#isDraining || performance.now() < this.#pausedUntilMs) return;
    const requests = this.#schedule.take(performance.now());
    if (requests.length === 0) {
      const { surplus } = this.#schedule;
      if (surplus !== null) this.#onSurplus(surplus);
      return;
    }
    this.#isClaiming = true;
    this.#work.add(
      this.#claim(requests).finally(() => {
        this.#isClaiming = false;
        this.#startAll();
        this.#pump();
      }),
    );
  }

  async #claim(requests: readonly ClaimRequest[]): Promise<void> {
    try {
      const askedAtMs = performance.now();
      const failed = await this.#claims.claim(requests, askedAtMs, (request, claim) => {
        this.#hold(request, claim, askedAtMs);
        // An attempt under a maximum rate must begin within milliseconds, which the other claims of the round may take.
        if (claim.isPaced) this.#startAll();
      });
      // `failed` frees all claiming places of the endpoint, so it comes last. By then `#hold` has called `took` for the
      // requests that succeeded, and their places are not claiming any more.
      for (const request of failed) this.#schedule.failed(request);
      if (this.#isDraining) this.#giveBackAll([...this.#held.keys()].filter(({ state }) => state === 'claimed'));
    } catch (error) {
      // The endpoints stay ready, because their deliveries are still due.
      for (const request of requests) this.#schedule.failed(request);
      this.#pauseClaims(error);
    }
  }

  #hold(request: ClaimRequest, claim: Claim, askedAtMs: number): void {
    const { claimed, nextInMs, isPaced, isMore, pause, answeredAtMs } = claim;
    this.#schedule.pace(request.endpointId, isPaced);
    const places = this.#schedule.took(request, claimed.length, answeredAtMs, isMore);
    for (const [at, place] of places.entries()) {
      this.#held.set(place, { claim: claimed[at] as ClaimedDelivery, askedAtMs, answeredAtMs });
    }
    if (nextInMs !== null) this.#retryIn(request.endpointId, nextInMs);
    if (pause !== null) this.#pause(request.endpointId, pause, askedAtMs);
  }

  #pauseClaims(error: unknown): void {
    this.#pausedUntilMs = performance.now() + CLAIM_PAUSE_MS;
    // Adds 10 ms, because a timer may fire a moment early.
    setTimeout(() => this.#pump(), CLAIM_PAUSE_MS + 10).unref();
    const message = isDatabaseUnavailable(error) ? 'claims wait for PostgreSQL' : 'claim failed';
    this.#deps.logger.error(message, { error });
  }

  #startAll(): void {
    if (this.#isDraining) return;
    for (;;) {
      const place = this.#schedule.start(performance.now());
      if (place === undefined) return;
      const held = this.#held.get(place);
      this.#held.delete(place);
      if (held !== undefined) this.#work.add(this.#attempt(place, held));
    }
  }

  async #attempt(place: Place, held: Held): Promise<void> {
    const { claim } = held;
    const startedAtMs = performance.now();
    if (startedAtMs >= startByMs(claim, held, this.#deps.leaseMs)) return this.#giveBack(place, claim);
    const started = startOf(claim, startedAtMs - held.answeredAtMs);
    const overdue = setTimeout(() => {
      this.#giveBackAll(this.#schedule.overdue(place, performance.now()));
      this.#pump();
    }, SLOW_FROM_MS);
    let settling: Promise<Settled | null> | undefined;
    this.#deps.settling.attemptBegins();
    try {
      const attempted = await attemptDelivery(this.#deps, started);
      if (attempted === null) {
        this.#schedule.giveBack(place);
        this.#schedule.resume(place.endpointId, performance.now());
        return;
      }
      const { durationMs } = attempted.attempt;
      const slotMs = this.#schedule.end(place, { durationMs, hung: attempted.hung }, performance.now());
      settling = attempted.settle(slotMs ?? durationMs);
    } catch (error) {
      this.#schedule.end(place, { durationMs: performance.now() - startedAtMs, hung: false }, performance.now());
      this.#deps.logger.error('delivery attempt failed', { deliveryId: claim.id, endpointId: claim.endpointId, error });
    } finally {
      clearTimeout(overdue);
      // The slot is free as soon as the receiver has answered. The outcome is written while the next attempt runs.
      this.#startAll();
      this.#pump();
      this.#deps.settling.attemptEnds();
    }
    const settled = await settling;
    if (typeof settled?.retryInMs === 'number') this.#retryIn(place.endpointId, settled.retryInMs);
    if (settled?.next != null) this.wake([place.endpointId], [settled.next]);
    // Another delivery may take the place of this one under the limits of the endpoint.
    this.#schedule.resume(place.endpointId, performance.now());
    this.#pump();
  }

  #giveBackAll(places: readonly Place[]): void {
    for (const place of places) {
      const held = this.#held.get(place);
      this.#held.delete(place);
      if (held !== undefined) this.#work.add(this.#giveBack(place, held.claim));
    }
  }

  /** Releases the row, which is then due again. The attempt does not count. */
  async #giveBack(place: Place, claim: ClaimedDelivery): Promise<void> {
    this.#schedule.giveBack(place);
    await releaseDelivery(this.#deps.database.sql, claim, 0);
    this.#claims.forget(claim.endpointId);
    // The delivery is not in flight any more under the limits of the endpoint.
    this.#schedule.resume(claim.endpointId, performance.now());
    this.#startAll();
    this.wake([claim.endpointId]);
  }

  #retryIn(endpointId: string, inMs: number): void {
    const atMs = performance.now() + inMs;
    this.#schedule.later(endpointId, atMs);
    this.#later.at(atMs);
  }

  #pause(endpointId: string, { forMs, endsWithAttempt }: NonNullable<Claim['pause']>, askedAtMs: number): void {
    const nowMs = performance.now();
    this.#schedule.pause(endpointId, { untilMs: nowMs + forMs, endsWithAttempt }, askedAtMs, nowMs);
    this.#later.at(nowMs + forMs);
  }
}
