import { LRUCache } from 'lru-cache';
import { CONCURRENCY_PER_WORKER } from '../operations/operation.js';

/** Expected duration of an endpoint's next attempt, in milliseconds; null if the endpoint was never tried. */
export type SlotMs = number | null;

/**
 * The queue in which an endpoint waits for its turns. It depends on the expected duration, not on success: a 503 within
 * 5 ms costs no time. Turns of the slow lane never use all slots of a worker.
 */
export type Lane = 'fast' | 'slow';

/**
 * Expected duration from which an endpoint belongs into the slow lane, in milliseconds. A turn of the fast lane waits no
 * longer than this for a slot, for the 2 s of guarantee W7.
 */
export const SLOW_FROM_MS = 1000;
/**
 * Expected duration from which an endpoint gets one attempt at a time, in milliseconds. A changed URL is expected to take
 * at least as long.
 */
export const HUNG_FROM_MS = 5000;
/** Duration that counts for an attempt without an answer, in milliseconds: the contract's deadline. */
const HUNG_SLOT_MS = 10_000;
/**
 * Shorter durations count as this one, in milliseconds: such an endpoint gets several deliveries a turn, for the throughput
 * of `bench deliveries`.
 */
export const SLOT_MS_MIN = 64;
/** Share of the expected duration that remains after a shorter attempt: docs/webhooks.md promises four quick answers. */
const DECAY = 0.5;

/** Deliveries that one turn takes of an endpoint that answers within {@link SLOT_MS_MIN}. Others get one at a time. */
export const TURN_DELIVERIES_MAX = 16;
/** Turns of an endpoint at once: all slots of eight workers, the most that `bench deliveries` measures. */
const TICKETS_MAX = 32;

export function laneOf(slotMs: SlotMs): Lane {
  return slotMs !== null && slotMs < SLOW_FROM_MS ? 'fast' : 'slow';
}

/** How many turns of an endpoint may run at once: one until the endpoint has answered within a few seconds. */
export function ticketsOf(slotMs: SlotMs, maxConcurrent: number | null): number {
  if (slotMs === null || slotMs >= HUNG_FROM_MS) return 1;
  return Math.min(maxConcurrent ?? TICKETS_MAX, TICKETS_MAX);
}

/**
 * The expected duration after an attempt. It rises at once and falls slowly: an endpoint that hung must answer quickly
 * four times before it leaves the slow lane.
 * @param hung whether the attempt got no answer in time.
 */
export function slotMsAfter(slotMs: SlotMs, attempt: { durationMs: number; hung: boolean }): number {
  const tookMs = attempt.hung ? Math.max(HUNG_SLOT_MS, attempt.durationMs) : attempt.durationMs;
  return Math.round(Math.max(SLOT_MS_MIN, tookMs, (slotMs ?? 0) * DECAY));
}

/** Time after which a use of a slot counts for a third, in milliseconds: three deadlines of a receiver that hangs. */
const FADE_MS = 30_000;
/** Use of slots that makes a difference of 1 in the priority of a job, in milliseconds. */
const STEP_MS = 10;
/** The largest that BullMQ takes. */
const PRIORITY_MAX = 2 ** 21 - 1;
/**
 * Steps by which an environment may exceed twice the use that a job knew, before the job goes back in the queue: each time
 * costs a round trip to Redis.
 */
const SLACK_STEPS = 10;
/**
 * Use of slots up to which turns of endpoints that were never tried go before all others, in steps: a quarter of the
 * deadline of an attempt, for the 15 s of a new endpoint in `bench isolation`.
 */
const NEW_STEPS = 250;
/**
 * An environment is active for this time after its last turn, in milliseconds. For as long after a slow attempt in the fast
 * lane, its turns stay in the slow lane. It outlasts the delays between the first attempts, 5 and 30 s.
 */
export const ACTIVE_MS = 60_000;
/** Environments whose use a worker remembers. Before its slots have served all, the use of the first has faded. */
const ENVIRONMENTS_MAX = 10_000;

/**
 * How long each environment has used the slots of one lane lately. BullMQ serves jobs with a small priority first, so
 * the environment with the least use is next. A job keeps the priority of the moment at which it was added. A turn whose
 * environment has used much more since goes back in the queue.
 */
export class SlotUsage {
  readonly #used = new LRUCache<string, { ms: number; atMs: number }>({ max: ENVIRONMENTS_MAX });

  /** Charges a turn when it begins. @returns a function that charges its real duration instead, when it ends. */
  begin(environmentId: string, slotMs: SlotMs, nowMs: number): (endedAtMs: number) => void {
    const expectedMs = slotMs ?? SLOW_FROM_MS;
    this.#add(environmentId, expectedMs, nowMs);
    return (endedAtMs) => this.#add(environmentId, endedAtMs - nowMs - expectedMs, endedAtMs);
  }

  priority(environmentId: string, nowMs: number): number {
    return Math.min(PRIORITY_MAX, 1 + Math.floor(this.#usedMs(environmentId, nowMs) / STEP_MS));
  }

  /** Whether a job must go back in the queue. @param priority of the job; 0 for an endpoint that was never tried. */
  isAhead(environmentId: string, priority: number, nowMs: number): boolean {
    return this.priority(environmentId, nowMs) > 2 * (priority === 0 ? NEW_STEPS : priority) + SLACK_STEPS;
  }

  hasOthers(environmentId: string, nowMs: number): boolean {
    // The latest first.
    for (const [other, { atMs }] of this.#used.entries()) {
      if (other !== environmentId) return nowMs - atMs < ACTIVE_MS;
    }
    return false;
  }

  #add(environmentId: string, ms: number, nowMs: number): void {
    this.#used.set(environmentId, { ms: this.#usedMs(environmentId, nowMs) + ms, atMs: nowMs });
  }

  #usedMs(environmentId: string, nowMs: number): number {
    const used = this.#used.peek(environmentId);
    return used === undefined ? 0 : Math.max(0, used.ms * Math.exp((used.atMs - nowMs) / FADE_MS));
  }
}

/** Slots that the turns of the slow lane, or of one environment beside others, may hold at once. */
export const SHARED_SLOTS_MAX = CONCURRENCY_PER_WORKER - 1;
