import {
  isReady,
  KnownEndpoints,
  nextKind,
  type Endpoint,
  type EndpointRow,
  type Kind,
  type Pause,
} from './known-endpoints.js';
import { laneOf, slotMsAfter, SLOW_FROM_MS, type SlotMs } from './slot-time.js';
import { Places, type Place } from './places.js';
import { SlotRules } from './slot-rules.js';

export type { Kind, Pause } from './known-endpoints.js';
export type { Place } from './places.js';

/** A request to claim the oldest due deliveries of one endpoint and kind. */
export interface ClaimRequest {
  readonly endpointId: string;
  readonly kind: Kind;
  readonly count: number;
}

export interface ScheduleSettings {
  /** Maximum number of concurrent attempts. */
  readonly slots: number;
  /** Maximum number of deliveries that are claimed ahead of a free slot. */
  readonly ahead: number;
  readonly endpointsMax?: number;
}

/**
 * Decides which endpoint's deliveries a worker claims and sends next. Holds endpoints that probably have due
 * deliveries, and a `Place` for each delivery from the decision to claim it to the end of its attempt. So its size does
 * not depend on any backlog. It does no I/O and has no clock: callers pass in times, in milliseconds.
 *
 * Life cycle: wake → (take → took → start → end), or giveBack for a claimed delivery that is not sent.
 */
export class DeliverySchedule {
  readonly #slots: number;
  readonly #ahead: number;
  readonly #endpoints: KnownEndpoints;
  readonly #places = new Places();
  readonly #rules: SlotRules;

  constructor({ slots, ahead, endpointsMax }: ScheduleSettings) {
    if (slots < 1 || ahead < 0) throw new RangeError('A schedule needs a slot.');
    this.#slots = slots;
    this.#ahead = ahead;
    this.#endpoints = new KnownEndpoints(endpointsMax);
    this.#rules = new SlotRules({ slots, ahead }, this.#endpoints, this.#places);
  }

  /** Number of slots in use. */
  get sending(): number {
    return this.#places.countState('sending');
  }

  /** Endpoints that wait for a place or for the end of a pause. */
  get readyIds(): string[] {
    return this.#endpoints.all.filter(isReady).map(({ id }) => id);
  }

  /** When the next known retry is due, or the next pause ends; null when none is known. */
  get nextLaterMs(): number | null {
    return this.#endpoints.nextLaterMs;
  }

  isReady(endpointId: string): boolean {
    const endpoint = this.#endpoints.get(endpointId);
    return endpoint !== undefined && isReady(endpoint);
  }

  /** The endpoint as it was learned, with its present slot time. */
  endpoint(endpointId: string): EndpointRow | undefined {
    const endpoint = this.#endpoints.get(endpointId);
    return endpoint && { endpointId, environmentId: endpoint.environmentId, slotMs: endpoint.slotMs };
  }

  /** Whether the endpoint can be woken. Otherwise read its row and call `learn` first. */
  knows(endpointId: string, nowMs: number): boolean {
    return this.#endpoints.knows(endpointId, nowMs);
  }

  /** @returns false when the limit of endpoints is reached. */
  learn(row: EndpointRow, nowMs: number): boolean {
    const isHeld = (endpointId: string): boolean => this.#places.countEndpoint(endpointId) > 0;
    const endpoint = this.#endpoints.learn(row, nowMs, isHeld);
    if (endpoint?.isWaiting === true) this.#rules.queue(endpoint, nowMs);
    return endpoint !== undefined;
  }

  /** Records that the endpoint may have due deliveries. Ignored for an endpoint that was not learned. */
  wake(endpointId: string, nowMs: number, kinds: readonly Kind[] = ['first', 'retry']): void {
    const endpoint = this.#endpoints.get(endpointId);
    if (endpoint === undefined || kinds.length === 0) return;
    for (const kind of kinds) endpoint.due[kind] = endpoint.rung[kind] = true;
    this.#rules.noteActive(endpoint.environmentId, nowMs);
    this.#rules.queue(endpoint, nowMs);
  }

  /** Records that a retry of the endpoint is due at this time. */
  later(endpointId: string, atMs: number): void {
    this.#endpoints.later(endpointId, atMs);
  }

  /**
   * Claims nothing of the endpoint during the pause, although its deliveries are due. Doorbells and scans do not end it,
   * so that a burst of events costs no claims that a limit refuses.
   *
   * A pause with `endsWithAttempt` is ignored if an attempt ended after the claim was sent. The claim may not have seen
   * that end, and no other end may follow.
   * @param askedAtMs when the claim was sent that found the reason for the pause.
   */
  pause(endpointId: string, pause: Pause, askedAtMs: number, nowMs: number): void {
    const endpoint = this.#endpoints.pause(endpointId, pause, askedAtMs);
    if (endpoint !== undefined) this.#rules.queue(endpoint, nowMs);
  }

  /** Sets whether the endpoint has a maximum rate: then none of its deliveries is claimed ahead of a free slot. */
  pace(endpointId: string, isPaced: boolean): void {
    const endpoint = this.#endpoints.get(endpointId);
    if (endpoint !== undefined) this.#endpoints.pace(endpoint, isPaced);
  }

  /** Ends a pause that was waiting for the end of an attempt of the endpoint. Call it when an attempt is settled. */
  resume(endpointId: string, nowMs: number): void {
    const endpoint = this.#endpoints.resume(endpointId, nowMs);
    if (endpoint !== undefined) this.#rules.queue(endpoint, nowMs);
  }

  /** Wakes endpoints whose next retry is due or whose pause is over. */
  wakeLaters(nowMs: number): void {
    for (const endpoint of this.#endpoints.takePaused(nowMs)) this.#rules.queue(endpoint, nowMs);
    for (const endpoint of this.#endpoints.takeLaters(nowMs)) this.wake(endpoint.id, nowMs, ['retry']);
  }

  /**
   * Decides which deliveries to claim now, in one statement. Their places stay occupied until `took` or `failed`
   * reports the result.
   */
  take(nowMs: number): ClaimRequest[] {
    const counts = new Map<string, { endpointId: string; kind: Kind; count: number }>();
    const mayClaimAhead = 2 * this.#places.countState('claimed') <= this.#ahead;
    while (this.#places.size < this.#slots + this.#ahead) {
      if (this.#places.size >= this.#slots && !mayClaimAhead) break;
      const picked = this.#rules.pick(nowMs);
      if (picked === undefined) break;
      const endpoint = this.#endpoints.get(picked.endpointId) as Endpoint;
      const { endpointId, environmentId, slotMs: chargedMs } = picked;
      this.#places.add({ endpointId, environmentId, lane: endpoint.lane, chargedMs, state: 'claiming' });
      const kind = nextKind(endpoint);
      endpoint.rung[kind] = false;
      const request = counts.get(`${kind} ${endpointId}`) ?? { endpointId, kind, count: 0 };
      request.count += 1;
      counts.set(`${kind} ${endpointId}`, request);
    }
    return [...counts.values()];
  }

  /**
   * Reports the result of one request of `take`. If fewer deliveries were claimed than requested, the endpoint has no
   * more due deliveries of that kind, unless `isMore` is set.
   */
  took({ endpointId, kind, count }: ClaimRequest, claimed: number, nowMs: number, isMore = false): Place[] {
    const own = this.#places.claiming(endpointId).slice(0, count);
    for (const place of own.slice(claimed)) this.giveBack(place);
    for (const place of own.slice(0, claimed)) place.state = 'claimed';
    const endpoint = this.#endpoints.get(endpointId);
    if (endpoint !== undefined && claimed < count && !isMore && !endpoint.rung[kind]) {
      endpoint.due[kind] = false;
      this.#rules.queue(endpoint, nowMs);
    }
    return own.slice(0, claimed);
  }

  /** Reports that the claim failed: the endpoint's deliveries are still due. */
  failed({ endpointId }: ClaimRequest): void {
    for (const place of this.#places.claiming(endpointId)) this.giveBack(place);
  }

  /** Takes a slot for the next claimed delivery; undefined when no slot is free or no delivery may have it. */
  start(nowMs: number): Place | undefined {
    if (this.sending >= this.#slots) return undefined;
    const place = this.#rules.nextClaimed(nowMs);
    if (place !== undefined) place.state = 'sending';
    return place;
  }

  /**
   * Reports that the attempt has taken as long as a slow one: all endpoints of its environment leave the fast lane.
   * @returns the deliveries that are claimed for the environment's fast endpoints and not sent yet; give each back.
   */
  overdue(place: Place, nowMs: number): Place[] {
    const endpoint = this.#endpoints.get(place.endpointId);
    if (endpoint === undefined || laneOf(endpoint.slotMs) !== 'fast') return [];
    this.#setSlotMs(endpoint, SLOW_FROM_MS, nowMs);
    // The environment's endpoints may share a server. Each must answer quickly again before it gets a fast slot.
    for (const each of this.#endpoints.all) {
      if (each.environmentId !== endpoint.environmentId || each.quickAtMs === null) continue;
      each.quickAtMs = null;
      this.#rules.queue(each, nowMs);
    }
    return [...this.#places].filter(
      (each) => each.state === 'claimed' && each.lane === 'fast' && each.environmentId === place.environmentId,
    );
  }

  /** Frees the place of a delivery that was not sent. Its endpoint is considered again when it is woken. */
  giveBack(place: Place): void {
    if (this.#places.delete(place)) this.#rules.lanes[place.lane].charge(place.environmentId, -place.chargedMs);
  }

  /** Ends an attempt: frees its slot and updates the endpoint's expected slot time. @returns the expected slot time */
  end(place: Place, attempt: { durationMs: number; hung: boolean }, nowMs: number): SlotMs {
    if (!this.#places.delete(place)) return null;
    // An attempt of more than a second moves the endpoint to another lane, so it must not cost the quick endpoints of
    // its environment more than that.
    const usedMs = place.lane === 'fast' ? Math.min(attempt.durationMs, SLOW_FROM_MS) : attempt.durationMs;
    this.#rules.lanes[place.lane].charge(place.environmentId, usedMs - place.chargedMs);
    const endpoint = this.#endpoints.get(place.endpointId);
    if (endpoint === undefined) return null;
    if (!attempt.hung && attempt.durationMs < SLOW_FROM_MS) endpoint.quickAtMs = nowMs;
    this.#setSlotMs(endpoint, slotMsAfter(endpoint.slotMs, attempt), nowMs);
    return endpoint.slotMs;
  }

  /** How much this worker has to do: its places, and the endpoints that wait for one. */
  get load(): number {
    return this.#places.size + this.#rules.waiting;
  }

  /** Whether fewer deliveries are claimed than there are slots. */
  get hasFreePlace(): boolean {
    return this.#places.size < this.#slots;
  }

  /** A fast or slow endpoint that waits while all slots are taken: another worker may have a free one. Or null. */
  get surplus(): EndpointRow | null {
    if (this.hasFreePlace) return null;
    const waiting = this.#rules.lanes.fast.peek(() => true) ?? this.#rules.lanes.slow.peek(() => true);
    return (waiting && this.endpoint(waiting.endpointId)) ?? null;
  }

  #setSlotMs(endpoint: Endpoint, slotMs: SlotMs, nowMs: number): void {
    endpoint.slotMs = slotMs;
    endpoint.learnedAtMs = nowMs;
    this.#rules.queue(endpoint, nowMs);
  }
}
