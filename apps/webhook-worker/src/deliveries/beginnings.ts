import type { Kind } from '@callplane/core';
import type { DeliveryBacklog } from '@callplane/db';

/** Backlogs that are remembered: as many as the schedule knows endpoints, of both kinds. */
const BACKLOGS_MAX = 20_000;

/**
 * The due times from which on endpoints may have due deliveries (docs/decisions/0039): the floor, and the beginnings of
 * the backlogs before it. Both are as of the last scan. Older ones are right, too, because a floor never becomes wrong.
 */
export class Beginnings {
  #floor: Date | null = null;
  #backlogs = new Map<string, Date>();
  /** Backlogs of the pass that is not complete. */
  #found = new Map<string, Date>();
  #isFull = false;

  /** @param floor null if there is none. */
  noteFloor(floor: Date | null): void {
    this.#floor = floor;
  }

  /**
   * Remembers a page of backlogs.
   * @param isLast whether the pass over all backlogs is complete. Backlogs that it has not found are over.
   */
  noteBacklogs(backlogs: readonly DeliveryBacklog[], isLast: boolean): void {
    for (const { endpointId, firstSince, retrySince } of backlogs) {
      if (this.#found.size >= BACKLOGS_MAX) this.#isFull = true;
      else {
        if (firstSince !== null) this.#found.set(`${endpointId} first`, firstSince);
        if (retrySince !== null) this.#found.set(`${endpointId} retry`, retrySince);
      }
    }
    if (!isLast) return;
    if (this.#found.size < BACKLOGS_MAX) this.#isFull = false;
    this.#backlogs = this.#found;
    this.#found = new Map();
  }

  /** @returns null if the endpoint may have due deliveries of any age. */
  of(endpointId: string, kind: Kind): Date | null {
    const key = `${endpointId} ${kind}`;
    const backlog = this.#found.get(key) ?? this.#backlogs.get(key);
    if (this.#floor === null || (backlog === undefined && this.#isFull)) return null;
    return backlog !== undefined && backlog < this.#floor ? backlog : this.#floor;
  }
}
