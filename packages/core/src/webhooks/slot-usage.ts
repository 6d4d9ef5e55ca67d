import type { SlotMs } from './slot-time.js';

/** Time after which a use of a slot counts for a third, in milliseconds. */
const FADE_MS = 30_000;
/** Use of slots that makes a difference of 1 in the priority of a job, in milliseconds. */
const STEP_MS = 10;
/** BullMQ's largest priority. */
const PRIORITY_MAX = 2 ** 21 - 1;
/** Steps by which an environment may exceed twice the use that a job knew, before the job goes back in the line. */
const SLACK_STEPS = 10;
/** Use of slots up to which turns of endpoints that were never tried go before all others, in steps. */
const NEW_STEPS = 250;
/** Use that is charged in advance for an endpoint that was never tried, in milliseconds. */
const NEW_SLOT_MS = 1000;
/** An environment is active for this time after its last turn, in milliseconds. */
const ACTIVE_MS = 60_000;
/** Environments that are remembered before those without a use are forgotten. */
const REMEMBERED_MAX = 1000;

/**
 * How long each environment has used the slots of one lane lately. BullMQ serves jobs with a small priority first, so
 * the environment with the least use is next. A job keeps the priority of the moment at which it was added. A turn whose
 * environment has used much more since goes back in the line.
 */
export class SlotUsage {
  readonly #used = new Map<string, { ms: number; atMs: number }>();

  /** Charges a turn when it begins. @returns a function that charges its real duration instead, when it ends. */
  begin(environmentId: string, slotMs: SlotMs, nowMs: number): (endedAtMs: number) => void {
    const expectedMs = slotMs ?? NEW_SLOT_MS;
    this.#add(environmentId, expectedMs, nowMs);
    return (endedAtMs) => this.#add(environmentId, endedAtMs - nowMs - expectedMs, endedAtMs);
  }

  /** The priority of a job of the environment. */
  priority(environmentId: string, nowMs: number): number {
    return Math.min(PRIORITY_MAX, 1 + Math.floor(this.#usedMs(environmentId, nowMs) / STEP_MS));
  }

  /** Whether a job must go back in the line. @param priority of the job; 0 for an endpoint that was never tried. */
  isAhead(environmentId: string, priority: number, nowMs: number): boolean {
    return this.priority(environmentId, nowMs) > 2 * (priority === 0 ? NEW_STEPS : priority) + SLACK_STEPS;
  }

  /** Whether other environments have used slots within the last minute. */
  hasOthers(environmentId: string, nowMs: number): boolean {
    for (const [other, { atMs }] of this.#used) if (other !== environmentId && nowMs - atMs < ACTIVE_MS) return true;
    return false;
  }

  #add(environmentId: string, ms: number, nowMs: number): void {
    this.#used.set(environmentId, { ms: this.#usedMs(environmentId, nowMs) + ms, atMs: nowMs });
    if (this.#used.size <= REMEMBERED_MAX) return;
    for (const [other, { atMs }] of [...this.#used]) {
      if (nowMs - atMs >= ACTIVE_MS && this.#usedMs(other, nowMs) < STEP_MS) this.#used.delete(other);
    }
  }

  #usedMs(environmentId: string, nowMs: number): number {
    const used = this.#used.get(environmentId);
    return used === undefined ? 0 : Math.max(0, used.ms * Math.exp((used.atMs - nowMs) / FADE_MS));
  }
}
