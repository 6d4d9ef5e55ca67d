import { CONCURRENCY_PER_WORKER } from '@callplane/core';

/** Slots that the turns of the slow lane, and those of one environment beside others, may hold at once. */
export const SHARED_SLOTS_MAX = CONCURRENCY_PER_WORKER - 1;
/** How long the turns of an environment stay in the slow lane after an attempt in the fast lane got slow. */
const SUSPECT_MS = 60_000;

/** Which environments may use the slots of the fast lane. */
export class FastSlots {
  readonly #held = new Map<string, number>();
  /** Until when the turns of an environment stay out of the fast lane, in the time of `performance.now()`. */
  readonly #suspects = new Map<string, number>();

  /** @param slots 1 takes a slot, -1 returns it. */
  hold(environmentId: string, slots: 1 | -1): void {
    const held = (this.#held.get(environmentId) ?? 0) + slots;
    if (held === 0) this.#held.delete(environmentId);
    else this.#held.set(environmentId, held);
  }

  /** Whether the environment holds as many slots as it may beside others. */
  isFull(environmentId: string): boolean {
    return (this.#held.get(environmentId) ?? 0) >= SHARED_SLOTS_MAX;
  }

  suspect(environmentId: string): void {
    remember(this.#suspects, environmentId, performance.now() + SUSPECT_MS);
  }

  isSuspect(environmentId: string): boolean {
    return (this.#suspects.get(environmentId) ?? 0) > performance.now();
  }
}

/** Entries that a map remembers. Beyond it, all are forgotten. */
const REMEMBERED_MAX = 10_000;

export function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= REMEMBERED_MAX) map.clear();
  map.set(key, value);
}
