import {
  ACTIVE_MS,
  CONCURRENCY_PER_WORKER,
  laneOf,
  SHARED_SLOTS_MAX,
  SLOW_FROM_MS,
  SlotUsage,
  type Lane,
} from '@callplane/core';
import type { Turn, TurnJob } from '@callplane/queue';
import { KeyedBound } from '@callplane/runtime';
import { LRUCache } from 'lru-cache';

/** The result of a turn: it comes back after a while, or other turns are announced. */
export type Next = { backInMs: number } | { announce: Turn[] };

export const OVER: Next = { announce: [] };

/**
 * Pause of a turn whose environment has all fast slots that it may hold, in milliseconds. A slot becomes free after 64 ms to
 * a second. Each pause costs a round trip to Redis.
 */
const SHARE_PAUSE_MS = 150;
const SUSPECTS_MAX = 10_000;
const ENDPOINTS_MAX = 10_000;
/**
 * Turns of a lane that wait for a slot. Only without Redis there are as many: a scan brings up to a thousand, and the next
 * one comes after 500 ms. A turn of the other lane waits for them too: 2.5 s at 100 ms each.
 */
export const WAITING_MAX = 100;

interface Waiting {
  turn: TurnJob;
  /** @param isIn whether the turn has a slot; otherwise the turn of another environment took its place. */
  end: (isIn: boolean) => void;
}

/**
 * Decides when a turn begins: gives it one of the slots of its lane, or sends it back because its environment has used much
 * since the turn was added. A free slot goes to the lane of the turn that came first, and there to the environment that has
 * used the least. Guarantee W7 depends on it; docs/decisions/0005 has an example.
 */
export class Admission {
  readonly #slotsMax: number;
  readonly #slowSlotsMax: number;
  readonly #inUse: Record<Lane, number> = { fast: 0, slow: 0 };
  /** Turns that wait for a slot, in the order in which they came. */
  readonly #waiting: Waiting[] = [];
  readonly #usage: Record<Lane, SlotUsage> = { fast: new SlotUsage(), slow: new SlotUsage() };
  /** Slots that environments hold in the fast lane. */
  readonly #fastSlots: KeyedBound;
  /** By environment: the endpoints whose attempts took long in the fast lane, with the time when the latest became slow. */
  readonly #suspects = new LRUCache<string, Map<string, number>>({ max: SUSPECTS_MAX, ttl: ACTIVE_MS });
  /** When the latest quick attempt at an endpoint ended. */
  readonly #quickAtMs = new LRUCache<string, number>({ max: ENDPOINTS_MAX });

  /** @param workers of this process. They share their slots. */
  constructor(workers: number) {
    const sharedMax = workers * SHARED_SLOTS_MAX;
    this.#slotsMax = workers * CONCURRENCY_PER_WORKER;
    this.#slowSlotsMax = sharedMax;
    this.#fastSlots = new KeyedBound({ max: this.#slotsMax, perKeyMax: sharedMax });
  }

  get inUse(): number {
    return this.#inUse.fast + this.#inUse.slow;
  }

  get hasFreeSlot(): boolean {
    return this.inUse < this.#slotsMax;
  }

  priority({ environmentId, slotMs, lane = laneOf(slotMs) }: Turn): number {
    return this.#usage[lane].priority(environmentId, performance.now());
  }

  /**
   * Where a turn goes instead of into a slot: to the slow lane, or back in its line; null if it may begin.
   * @param priority that the turn had in Redis
   */
  placeOf(turn: TurnJob, priority: number): Next | null {
    const { environmentId, lane } = turn;
    if (lane === 'fast' && this.#isSuspect(turn)) return this.again(turn, { lane: 'slow' });
    const isAhead = this.#usage[lane].isAhead(environmentId, priority, performance.now());
    // A worker takes as many turns of the slow lane as that has slots, so each finds a free one: with a look at free
    // slots, the rule would never apply there.
    const mayGoAhead = lane === 'fast' && this.hasFreeSlot;
    return isAhead && !mayGoAhead ? this.again(turn) : null;
  }

  /**
   * Runs `work` in a slot, unless too many wait for one, or a rule has changed while the turn waited. Charges the environment
   * for the time.
   */
  async inSlot<T>(turn: TurnJob, work: () => Promise<T>): Promise<T | Next> {
    const isIn = await new Promise<boolean>((end) => {
      this.#waiting.push({ turn, end });
      this.#beginNext();
      this.#boundWaiting(turn.lane);
    });
    if (!isIn) return { backInMs: SHARE_PAUSE_MS };
    try {
      return this.#refusal(turn) ?? (await this.#charged(turn, work));
    } finally {
      this.#inUse[turn.lane] -= 1;
      this.#beginNext();
    }
  }

  async #charged<T>({ environmentId, lane, slotMs }: TurnJob, work: () => Promise<T>): Promise<T> {
    const ended = this.#usage[lane].begin(environmentId, slotMs, performance.now());
    if (lane === 'fast') this.#fastSlots.add(environmentId, 1);
    try {
      return await work();
    } finally {
      ended(performance.now());
      if (lane === 'fast') this.#fastSlots.add(environmentId, -1);
    }
  }

  #beginNext(): void {
    if (!this.hasFreeSlot) return;
    const hasSlow = this.#inUse.slow < this.#slowSlotsMax;
    const first = this.#waiting.findIndex(({ turn }) => hasSlow || turn.lane === 'fast');
    const oldest = this.#waiting[first];
    if (oldest === undefined) return;
    const { lane } = oldest.turn;
    let [chosen, next, least] = [first, oldest, Infinity];
    for (const [at, each] of this.#waiting.entries()) {
      const used = each.turn.lane === lane ? this.priority(each.turn) : Infinity;
      if (used < least) [chosen, next, least] = [at, each, used];
    }
    // The oldest takes the place of the turn that goes before it. So each lane gets its share of the slots.
    this.#waiting[chosen] = oldest;
    this.#waiting.splice(first, 1);
    this.#inUse[lane] += 1;
    next.end(true);
  }

  /** Sends back the latest turn of the environment that has used most, so that the turns of one leave room for others. */
  #boundWaiting(lane: Lane): void {
    const inLane = this.#waiting.filter(({ turn }) => turn.lane === lane);
    if (inLane.length <= WAITING_MAX) return;
    const used = inLane.map(({ turn }) => this.priority(turn));
    const last = inLane[used.lastIndexOf(Math.max(...used))] as Waiting;
    this.#waiting.splice(this.#waiting.indexOf(last), 1);
    last.end(false);
  }

  /** An attempt of the turn takes as long as in the slow lane. */
  onSlow({ environmentId, endpointId, lane }: TurnJob): void {
    if (lane !== 'fast') return;
    const suspects = this.#suspects.get(environmentId) ?? new Map<string, number>();
    this.#suspects.set(environmentId, suspects.set(endpointId, performance.now()));
  }

  onQuick({ endpointId }: TurnJob): void {
    this.#quickAtMs.set(endpointId, performance.now());
  }

  /**
   * Whether turns of the endpoint stay out of the fast lane: for a while after a long attempt there, and for as long after
   * one at another endpoint of the environment, until an attempt that ends after that one began is quick. The receivers of an
   * environment may all have stopped at once.
   */
  #isSuspect({ environmentId, endpointId }: Turn): boolean {
    const suspects = this.#suspects.get(environmentId);
    if (suspects === undefined) return false;
    for (const [id, atMs] of suspects) if (performance.now() - atMs > ACTIVE_MS) suspects.delete(id);
    if (suspects.has(endpointId)) return true;
    const beganMs = Math.max(...suspects.values()) - SLOW_FROM_MS;
    return (this.#quickAtMs.get(endpointId) ?? -Infinity) < beganMs;
  }

  /** The turn anew, with the priority of this moment. */
  again(turn: TurnJob, more: { lane?: Lane; delayMs?: number | null } = {}): { announce: Turn[] } {
    const { endpointId, environmentId, slotMs, ticket } = turn;
    const lane = more.lane ?? (this.#isSuspect(turn) ? 'slow' : laneOf(slotMs));
    const next = { endpointId, environmentId, slotMs, ticket, lane };
    const later = typeof more.delayMs === 'number' && more.delayMs > 0 ? { delayMs: more.delayMs } : {};
    return { announce: [{ ...next, priority: this.priority(next), ...later }] };
  }

  #refusal(turn: TurnJob): Next | null {
    const { environmentId, lane } = turn;
    if (lane === 'fast' && this.#isSuspect(turn)) return this.again(turn, { lane: 'slow' });
    // Attempts that hang in the fast lane count for both lanes.
    const now = performance.now();
    const hasOthers = Object.values(this.#usage).some((usage) => usage.hasOthers(environmentId, now));
    return !this.#fastSlots.allows(environmentId, 1) && hasOthers ? { backInMs: SHARE_PAUSE_MS } : null;
  }
}
