import { FairLane, type WaitingEndpoint } from './fair-lane.js';
import { isReady, type Endpoint, type KnownEndpoints } from './known-endpoints.js';
import { HUNG_SLOT_MS, laneOf, type Lane } from './slot-time.js';
import type { Place, Places } from './places.js';

/**
 * A quick response to this worker counts for this time. Without one, even an endpoint with a short expected slot time
 * gets one attempt at a time, in the slow lane: it may have become slow since.
 */
const QUICK_FOR_MS = 60_000;
/** Only endpoints with a shorter expected slot time are claimed ahead of a free slot. */
const AHEAD_SLOT_MS_MAX = 250;
/** An environment leaves one slot to others if another environment was active within this time. */
const OTHERS_ACTIVE_MS = 60_000;

/**
 * Decides in which lane an endpoint waits, which waiting endpoint gets the next place, and which claimed delivery may
 * use a slot. Endpoints that are not fast never occupy all slots, and unknown ones at most half of them, so that
 * deliveries to quick endpoints go on.
 */
export class SlotRules {
  readonly lanes: Readonly<Record<Lane, FairLane>> = {
    fast: new FairLane({ stepMs: 0 }),
    slow: new FairLane({ stepMs: 0 }),
    unknown: new FairLane({ stepMs: HUNG_SLOT_MS }),
  };
  readonly #slots: number;
  readonly #ahead: number;
  readonly #notFastMax: number;
  readonly #unknownMax: number;
  readonly #endpoints: KnownEndpoints;
  readonly #places: Places;
  #turns = 0;
  /** The two most recently active environments, the latest first. */
  #active: { environmentId: string; atMs: number }[] = [];

  constructor({ slots, ahead }: { slots: number; ahead: number }, endpoints: KnownEndpoints, places: Places) {
    this.#slots = slots;
    this.#ahead = ahead;
    this.#notFastMax = Math.max(1, slots - 1);
    this.#unknownMax = Math.max(1, Math.floor(slots / 2));
    this.#endpoints = endpoints;
    this.#places = places;
  }

  /** The number of endpoints that wait for a place. */
  get waiting(): number {
    return this.lanes.fast.size + this.lanes.slow.size + this.lanes.unknown.size;
  }

  /** Records that an endpoint of the environment was woken. */
  noteActive(environmentId: string, atMs: number): void {
    const [latest] = this.#active;
    if (latest?.environmentId === environmentId) {
      latest.atMs = atMs;
      return;
    }
    const others = this.#active.filter((each) => each.environmentId !== environmentId);
    this.#active = [{ environmentId, atMs }, ...others].slice(0, 2);
  }

  /** Moves the endpoint to its current lane, or out of the lanes when it has no due deliveries. */
  queue(endpoint: Endpoint, nowMs: number): void {
    const { id: endpointId, environmentId, slotMs, quickAtMs } = endpoint;
    const isQuick = quickAtMs !== null && nowMs - quickAtMs < QUICK_FOR_MS;
    const lane = laneOf(slotMs) === 'fast' && !isQuick ? 'slow' : laneOf(slotMs);
    const isWaiting = isReady(endpoint) && endpoint.pause === null;
    if (endpoint.isWaiting && (!isWaiting || lane !== endpoint.lane)) {
      this.lanes[endpoint.lane].delete({ endpointId, environmentId });
    }
    endpoint.lane = lane;
    endpoint.isWaiting = isWaiting;
    if (!isWaiting) return;
    const expectedMs = slotMs === null ? HUNG_SLOT_MS : Math.max(1, slotMs);
    this.lanes[lane].add({ endpointId, environmentId, slotMs: expectedMs, isNew: slotMs === null });
  }

  /** Picks the endpoint for the next place; undefined when no endpoint may have it. */
  pick(nowMs: number): WaitingEndpoint | undefined {
    const { fast, slow, unknown } = this.lanes;
    const slowUsed = this.#used('slow');
    const unknownUsed = this.#used('unknown');
    const isFree = this.#places.size < this.#slots;
    const mayStart = (waiting: WaitingEndpoint): boolean => this.#mayStart(waiting, nowMs);
    const hasRoom = slowUsed + unknownUsed < this.#notFastMax;
    // A worker with a single slot cannot reserve it for one lane: every second turn goes to the lanes unknown and slow
    // first, and the others to the fast lane.
    const mayGuarantee = this.#slots > 1 || (this.#turns += 1) % 2 === 0;
    if (hasRoom && mayGuarantee) {
      for (const lane of [...(unknownUsed === 0 ? [unknown] : []), ...(slowUsed === 0 ? [slow] : [])]) {
        const guaranteed = lane.peek(mayStart);
        if (guaranteed !== undefined) return isFree || !this.#isPaced(guaranteed) ? lane.pick(mayStart) : undefined;
      }
    }
    const next = fast.peek(mayStart);
    if (next !== undefined) {
      // If it is too slow to be claimed ahead or has a maximum rate, it waits for a free slot, and no other delivery is
      // claimed ahead that would delay it.
      return isFree || (next.slotMs <= AHEAD_SLOT_MS_MAX && !this.#isPaced(next)) ? fast.pick(mayStart) : undefined;
    }
    if (!hasRoom || !isFree) return undefined;
    const mayTakeUnknown = unknownUsed < this.#unknownMax;
    return (mayTakeUnknown ? unknown.pick(mayStart) : undefined) ?? slow.pick(mayStart);
  }

  /**
   * The claimed delivery that gets the next free slot. Deliveries under a maximum rate go first: they have a few
   * milliseconds to begin, and a late one loses its token.
   */
  nextClaimed(nowMs: number): Place | undefined {
    const claimed = [...this.#places].filter(({ state }) => state === 'claimed');
    const maySend = (place: Place): boolean => this.#maySend(place, nowMs);
    return claimed.find((place) => this.#isPaced(place) && maySend(place)) ?? claimed.find(maySend);
  }

  #maySend(place: Place, nowMs: number): boolean {
    if (!this.#isFast(place)) return true;
    const sending = this.#places.count(
      (each) => each.state === 'sending' && each.environmentId === place.environmentId && this.#isFast(each),
    );
    return sending < this.#fastMax(place.environmentId, nowMs);
  }

  #mayStart({ endpointId, environmentId }: WaitingEndpoint, nowMs: number): boolean {
    const { lane, slotMs } = this.#endpoints.get(endpointId) as Endpoint;
    const isProbe = lane !== laneOf(slotMs) || lane === 'unknown';
    if (isProbe) return this.#places.countEndpoint(endpointId) === 0;
    if (lane === 'slow') return true;
    const ofEnvironment = this.#places.count((place) => place.environmentId === environmentId && this.#isFast(place));
    // While an endpoint with a maximum rate waits for a free slot, no fast delivery of its environment is claimed
    // ahead. Deliveries that are claimed ahead would take every slot that becomes free.
    const ahead = this.#endpoints.isPacedOneWaiting(environmentId) ? 0 : this.#ahead;
    return ofEnvironment < this.#fastMax(environmentId, nowMs) + ahead;
  }

  /** Maximum number of slots for the fast endpoints of one environment. */
  #fastMax(environmentId: string, nowMs: number): number {
    const hasOthers = this.#active.some(
      (each) => each.environmentId !== environmentId && nowMs - each.atMs < OTHERS_ACTIVE_MS,
    );
    return hasOthers ? this.#notFastMax : this.#slots;
  }

  #isPaced({ endpointId }: Pick<WaitingEndpoint, 'endpointId'>): boolean {
    return this.#endpoints.get(endpointId)?.isPaced === true;
  }

  #isFast({ endpointId }: Place): boolean {
    return this.#endpoints.get(endpointId)?.lane === 'fast';
  }

  /** Number of places whose endpoints are in the lane now. */
  #used(lane: Lane): number {
    return this.#places.count(({ endpointId }) => this.#endpoints.get(endpointId)?.lane === lane);
  }
}
