import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CONCURRENCY_PER_WORKER,
  FastSlots,
  laneOf,
  remember,
  SHARED_SLOTS_MAX,
  SLOW_FROM_MS,
  SlotUsage,
  slotMsAfter,
  ticketsOf,
  type Lane,
  type SlotMs,
} from '@callplane/core';
import {
  claimDeliveries,
  isDatabaseUnavailable,
  takeOverLeases,
  type Claim,
  type ClaimedDelivery,
} from '@callplane/db';
import type { Handed, Turn, TurnJob } from '@callplane/queue';
import pLimit from 'p-limit';
import type { Deps } from '../deps.js';
import { logEndedLeases } from '../sweep/sweep.js';
import { attemptDelivery, type Settled } from './attempt.js';

/**
 * A turn claims no more deliveries after TURN_MS, and sends no more of its claimed ones after TURN_MS_MAX, in milliseconds.
 * One statement settles the outcomes of the first TURN_MS. An endpoint with limits settles each at once: an open one
 * holds a place.
 */
const TURN_MS = 100;
const TURN_MS_MAX = 250;
/** A first attempt begins within this time of the sending of its claim: a frozen worker may have lost it since. */
const CLAIM_MS_MAX = 5000;
/** Pause of a turn whose environment has all slots that it may hold, in milliseconds. */
const SHARE_PAUSE_MS = 150;
/** Pause after a claim that failed, in milliseconds, so that PostgreSQL can recover. */
const FAILED_PAUSE_MS = 500;
/** An endpoint whose claim found nothing pauses for this many times the time that the claim took beyond a moment. */
const EMPTY_PAUSE_FACTOR = 10;
const EMPTY_MS_MAX = 20;
/** Turns without Redis that wait for a slot of the slow lane. They are few, so that those of a later scan begin soon. */
const SLOW_WAITING_MAX = 2 * CONCURRENCY_PER_WORKER;

/** What follows a turn: the turn comes back after a while, or other turns are announced. */
export type Next = { backInMs: number } | { announce: Turn[] };

const OVER: Next = { announce: [] };

interface Sent {
  claim: Claim;
  settling: Promise<Settled | null>[];
  slotMs: SlotMs;
}

/**
 * Takes turns, from Redis or, without it, from scans: claims due deliveries of an endpoint, sends one after another in
 * one of four slots, and settles them. docs/decisions/0005 explains the rules.
 */
export class Turns {
  readonly #deps: Deps;
  readonly #slots = pLimit(CONCURRENCY_PER_WORKER);
  readonly #slowSlots = pLimit(SHARED_SLOTS_MAX);
  readonly #usage: Record<Lane, SlotUsage> = { fast: new SlotUsage(), slow: new SlotUsage() };
  readonly #fastSlots = new FastSlots();
  readonly #lastRooms = new Map<string, string>();
  readonly #pauses = new Map<string, number>();
  readonly #running = new Set<Promise<unknown>>();
  /** Turns of this worker, by endpoint and ticket. */
  readonly #taken = new Set<string>();
  #isDraining = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get inUse(): number {
    return this.#slots.activeCount;
  }

  priority({ environmentId, slotMs, lane = laneOf(slotMs) }: Turn): number {
    return this.#usage[lane].priority(environmentId, performance.now());
  }

  /** Takes a turn that BullMQ has handed over. @returns the time after which it comes back; null if it is over. */
  async take(turn: TurnJob, { priority, run, isStalled }: Handed): Promise<number | null> {
    if (this.#isDraining) return 0;
    if (isStalled) await this.#takeOver(turn, run);
    const next = this.#placeOf(turn, priority) ?? (await this.#track(turn, this.#run(turn, tokenOf(turn.turn, run))));
    if ('backInMs' in next) return next.backInMs;
    await this.#deps.producer.wakeDeliveries(next.announce);
    return null;
  }

  /**
   * Runs the turns of an endpoint without Redis, in the same slots, until nothing is due. Turns that still wait when Redis
   * is back end: its jobs come in the order of what their environments have used.
   */
  async runDirectly(turn: Turn): Promise<void> {
    if (this.#taken.has(keyOf(turn))) return;
    const isSlow = (turn.lane ?? laneOf(turn.slotMs)) === 'slow';
    if (isSlow && this.#slowSlots.pendingCount >= SLOW_WAITING_MAX) return;
    try {
      let next: Turn | undefined = turn;
      while (next !== undefined && next.delayMs === undefined && !this.#isDraining && !this.#hasRedis) {
        const { slotMs, lane = laneOf(slotMs), ticket = 0 }: Turn = next;
        const token = randomUUID();
        const isOver = (): boolean => this.#hasRedis;
        const after: Next = await this.#track(next, this.#run({ ...next, lane, ticket, turn: token }, token, isOver));
        next = 'announce' in after ? after.announce[0] : undefined;
      }
    } catch {
      // The claim is logged. The next scan finds the endpoint.
    }
  }

  /** Begins no more attempts and waits for the running ones. Deliveries that are claimed but not sent are released. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await Promise.allSettled([...this.#running]);
  }

  get #hasRedis(): boolean {
    return this.#deps.producer.health.trouble === null;
  }

  async #track<T>(turn: Turn, work: Promise<T>): Promise<T> {
    this.#running.add(work);
    this.#taken.add(keyOf(turn));
    try {
      return await work;
    } finally {
      this.#running.delete(work);
      this.#taken.delete(keyOf(turn));
    }
  }

  /** Where a turn goes instead of into a slot: to the slow lane, or back in its line; null if it may begin. */
  #placeOf(turn: TurnJob, priority: number): Next | null {
    const { environmentId, lane } = turn;
    if (lane === 'fast' && this.#isSuspect(environmentId)) return this.#again(turn, { lane: 'slow' });
    const isAhead = this.#usage[lane].isAhead(environmentId, priority, performance.now());
    // A worker takes as many turns of the slow lane as that has slots, so each finds a free one: with a look at free
    // slots, the rule would never apply there.
    const mayGoAhead = lane === 'fast' && this.#hasFreeSlot;
    return isAhead && !mayGoAhead ? this.#again(turn) : null;
  }

  get #hasFreeSlot(): boolean {
    return this.#slots.activeCount < CONCURRENCY_PER_WORKER && this.#slots.pendingCount === 0;
  }

  /** @param isOver asked when the turn has its slot */
  async #run(turn: TurnJob, token: string, isOver = () => false): Promise<Next> {
    const { lane } = turn;
    const inSlot = (): Promise<Sent | Next> =>
      this.#slots(async () => (isOver() ? OVER : this.#claimAndSend(turn, token)));
    const sent = await (lane === 'slow' ? this.#slowSlots(inSlot) : inSlot());
    if (!('claim' in sent)) return sent;
    const { claim, slotMs } = sent;
    const settled = await Promise.all(sent.settling);
    const { endpoint } = claim;
    if (endpoint === null) return OVER;
    const isDueAgain = claim.isMore || (endpoint.isLimited && settled.length > 0);
    if (isDueAgain) return this.#again({ ...turn, slotMs }, { delayMs: endpoint.paceMs });
    const retries = settled.flatMap((each) => each?.retryInMs ?? []);
    const nextInMs = Math.min(claim.nextInMs ?? Infinity, ...retries);
    return nextInMs === Infinity ? OVER : this.#again({ ...turn, slotMs, ticket: 0 }, { delayMs: nextInMs });
  }

  async #claimAndSend(turn: TurnJob, token: string): Promise<Sent | Next> {
    const { environmentId, lane } = turn;
    const refused = this.#refusal(turn);
    if (refused !== null) return refused;
    const startedAtMs = performance.now();
    const ended = this.#usage[lane].begin(environmentId, turn.slotMs, startedAtMs);
    if (lane === 'fast') this.#fastSlots.hold(environmentId, 1);
    const outcomes: (() => Promise<Settled | null>)[] = [];
    const settling: Promise<Settled | null>[] = [];
    const settleAll = (): void => {
      for (const settle of outcomes.splice(0)) settling.push(settle());
    };
    const settleSoon = setTimeout(settleAll, TURN_MS);
    let { slotMs } = turn;
    try {
      for (let claims = 0; ; claims += 1) {
        const askedAtMs = performance.now();
        const claim = await this.#claim(turn, token);
        const { endpoint, claimed } = claim;
        if (claims === 0) slotMs = endpoint?.slotMs ?? null;
        const isSlow = endpoint !== null && lane === 'fast' && laneOf(endpoint.slotMs) === 'slow';
        if (isSlow) return { claim: { ...claim, isMore: true }, settling, slotMs: endpoint.slotMs };
        if (claims === 0 && claim.isMore) this.#useMoreSlots(turn, claim);
        for (const [index, delivery] of claimed.entries()) {
          const now = performance.now();
          const isLate = index === 0 ? now - askedAtMs > CLAIM_MS_MAX : now - startedAtMs > TURN_MS_MAX;
          if (this.#isDraining || isLate) {
            await this.#deps.settling.release(claimed.slice(index));
            return { claim: { ...claim, isMore: true }, settling, slotMs };
          }
          const attempted = await this.#attempt(turn, delivery, index === 0 ? 0 : now - askedAtMs);
          if (attempted === null) continue;
          const expectedMs = slotMsAfter(slotMs, { durationMs: attempted.attempt.durationMs, hung: attempted.hung });
          slotMs = expectedMs;
          outcomes.push(() => attempted.settle(expectedMs));
          if (endpoint?.isLimited === true || performance.now() - startedAtMs >= TURN_MS) settleAll();
        }
        const isOver = performance.now() - startedAtMs >= TURN_MS || this.#isDraining;
        if (isOver || !claim.isMore || claimed.length === 0) return { claim, settling, slotMs };
      }
    } finally {
      clearTimeout(settleSoon);
      settleAll();
      ended(performance.now());
      if (lane === 'fast') this.#fastSlots.hold(environmentId, -1);
    }
  }

  /** Rules that may have changed while the turn waited for its slot. */
  #refusal(turn: TurnJob): Next | null {
    const { endpointId, environmentId, lane } = turn;
    if (this.#isDraining) return { backInMs: 0 };
    const pauseMs = (this.#pauses.get(endpointId) ?? 0) - performance.now();
    if (pauseMs > 0) return { backInMs: Math.ceil(pauseMs) };
    if (lane === 'fast' && this.#isSuspect(environmentId)) return this.#again(turn, { lane: 'slow' });
    // Attempts that hang in the fast lane count for both lanes.
    const now = performance.now();
    const hasOthers = Object.values(this.#usage).some((usage) => usage.hasOthers(environmentId, now));
    return this.#fastSlots.isFull(environmentId) && hasOthers ? { backInMs: SHARE_PAUSE_MS } : null;
  }

  #isSuspect(environmentId: string): boolean {
    return this.#fastSlots.isSuspect(environmentId, performance.now());
  }

  async #claim({ endpointId, lane }: TurnJob, token: string): Promise<Claim> {
    const { claimsDatabase, database, leaseMs } = this.#deps;
    const askedAtMs = performance.now();
    const afterRoomId = this.#lastRooms.get(endpointId) ?? '';
    try {
      const claim = await claimDeliveries(
        { claimsDatabase, database },
        { endpointId, lane, token, leaseMs, afterRoomId },
      );
      const room = claim.claimed.findLast(({ roomId }) => roomId !== null)?.roomId;
      if (room != null && claim.endpoint?.isLimited === true) remember(this.#lastRooms, endpointId, room);
      const now = performance.now();
      const lateMs = claim.claimed.length > 0 ? 0 : now - askedAtMs - EMPTY_MS_MAX;
      if (lateMs > 0) remember(this.#pauses, endpointId, now + EMPTY_PAUSE_FACTOR * lateMs);
      return claim;
    } catch (error) {
      const message = isDatabaseUnavailable(error) ? 'claims wait for PostgreSQL' : 'claim failed';
      this.#deps.logger.error(message, { endpointId, error });
      await delay(FAILED_PAUSE_MS);
      throw error;
    }
  }

  /** Another worker, or another slot of this one, takes the next turn of the endpoint at the same time. */
  #useMoreSlots(turn: TurnJob, { endpoint, claimed }: Claim): void {
    if (endpoint === null || claimed.length === 0) return;
    const tickets = ticketsOf(endpoint.slotMs, endpoint.maxConcurrent);
    if (tickets === 1) return;
    if (endpoint.paceMs === null && !this.#hasFreeSlot) return;
    // Any ticket will do that no turn of this worker has. If another worker has it, that turn is repeated.
    const free = Array.from({ length: tickets }, (_, ticket) => ticket).filter(
      (ticket) => !this.#taken.has(keyOf({ ...turn, ticket })),
    );
    if (free.length === 0) return;
    const ticket = free[randomInt(free.length)] as number;
    const next = this.#again({ ...turn, ticket, slotMs: endpoint.slotMs }, { delayMs: endpoint.paceMs });
    for (const each of next.announce) {
      if (this.#hasRedis) void this.#deps.producer.wakeDeliveries([each]);
      else void this.runDirectly(each);
    }
  }

  async #attempt({ environmentId, lane }: TurnJob, delivery: ClaimedDelivery, waitedMs: number) {
    const overdue = setTimeout(() => {
      if (lane === 'fast') this.#fastSlots.suspect(environmentId, performance.now());
    }, SLOW_FROM_MS);
    try {
      const startedAt = new Date(delivery.startedAt.getTime() + waitedMs);
      return await attemptDelivery(this.#deps, { ...delivery, startedAt, lagMs: delivery.lagMs + waitedMs });
    } finally {
      clearTimeout(overdue);
    }
  }

  async #takeOver({ endpointId, turn }: TurnJob, run: number): Promise<void> {
    const { database, leaseMs } = this.#deps;
    const tokens = Array.from({ length: run - 1 }, (_, index) => tokenOf(turn, index + 1));
    logEndedLeases(this.#deps, await takeOverLeases(database.sql, leaseMs, { endpointId, tokens }));
  }

  #again(turn: TurnJob, more: { lane?: Lane; delayMs?: number | null } = {}): { announce: Turn[] } {
    const { endpointId, environmentId, slotMs, ticket } = turn;
    const lane = more.lane ?? (this.#isSuspect(environmentId) ? 'slow' : laneOf(slotMs));
    const next = { endpointId, environmentId, slotMs, ticket, lane };
    const later = typeof more.delayMs === 'number' && more.delayMs > 0 ? { delayMs: more.delayMs } : {};
    return { announce: [{ ...next, priority: this.priority(next), ...later }] };
  }
}

const keyOf = ({ endpointId, ticket = 0 }: Turn): string => `${endpointId} ${ticket}`;

/** The fencing token of a worker: the last four digits of the turn's UUID are the number of its worker. */
function tokenOf(turn: string, run: number): string {
  return turn.slice(0, -4) + (run % 0x10000).toString(16).padStart(4, '0');
}
