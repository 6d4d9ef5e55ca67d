export interface TurnBounds {
  /** Maximum number of waiting ids of one owner. */
  perOwner: number;
  /** Maximum number of waiting ids in total. */
  total: number;
}

interface Owner {
  waiting: string[];
  running: number;
}

/**
 * A fair queue of ids, by owner (an environment). Takes the next id from the owner with the fewest running ids; on a
 * tie, from the owner whose last turn is longest ago. An owner with a thousand ids therefore delays another owner's
 * first id by at most one place, however slow its own work is. (`FairLane` is the order of webhook deliveries, which
 * counts the time that they take.)
 */
export class Turns {
  readonly #bounds: TurnBounds;
  /** In the order of their last turns: an owner moves to the end when it gets a turn. */
  readonly #owners = new Map<string, Owner>();
  readonly #waiting = new Set<string>();

  constructor(bounds: TurnBounds) {
    this.#bounds = bounds;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Number of ids that can still be added. */
  get remainingCapacity(): number {
    return this.#bounds.total - this.#waiting.size;
  }

  /** Adds an id; false when the queue is full. An id that is already waiting is not added again. */
  add(ownerId: string, id: string): boolean {
    if (this.#waiting.has(id)) return true;
    const owner = this.#owners.get(ownerId) ?? { waiting: [], running: 0 };
    if (this.remainingCapacity <= 0 || owner.waiting.length >= this.#bounds.perOwner) return false;
    owner.waiting.push(id);
    this.#waiting.add(id);
    this.#owners.set(ownerId, owner);
    return true;
  }

  /** Takes the next id and counts it as running; null when none is waiting. */
  take(): { ownerId: string; id: string } | null {
    let next: { ownerId: string; owner: Owner } | null = null;
    for (const [ownerId, owner] of this.#owners) {
      if (owner.waiting.length > 0 && (next === null || owner.running < next.owner.running)) next = { ownerId, owner };
    }
    const id = next?.owner.waiting.shift();
    if (next === null || id === undefined) return null;
    const { ownerId, owner } = next;
    this.#waiting.delete(id);
    owner.running += 1;
    this.#owners.delete(ownerId);
    this.#owners.set(ownerId, owner);
    return { ownerId, id };
  }

  /** Ends an id that {@link take} returned. */
  done(ownerId: string): void {
    const owner = this.#owners.get(ownerId);
    if (owner === undefined) return;
    owner.running -= 1;
    if (owner.running === 0 && owner.waiting.length === 0) this.#owners.delete(ownerId);
  }

  /** Removes and returns all waiting ids. */
  clear(): string[] {
    const ids = [...this.#waiting];
    this.#waiting.clear();
    for (const [ownerId, owner] of this.#owners) {
      owner.waiting = [];
      if (owner.running === 0) this.#owners.delete(ownerId);
    }
    return ids;
  }
}
