/** Endpoints that lately answered well and soon are proven; all others, new ones included, are suspects. */
export type Lane = 'proven' | 'suspect';

export interface Waiting {
  /** Of the delivery; waits once at a time. */
  id: string;
  endpointId: string;
  lane: Lane;
  /** The endpoint was never tried. */
  isNew: boolean;
  /** Not the first attempt of its run. */
  isRetry: boolean;
  /** Called once, when the slot is taken. Must not throw; the slot is given back with `release(lane)`. */
  start(lane: Lane): void;
}

/** Queues of one urgency. Endpoints take turns, so that the queue of one does not delay another's. */
class Turns {
  readonly #queues = new Map<string, Map<string, Waiting>>();

  push(waiting: Waiting): void {
    const queue = this.#queues.get(waiting.endpointId) ?? new Map<string, Waiting>();
    this.#queues.set(waiting.endpointId, queue.set(waiting.id, waiting));
  }

  /** Takes the oldest of the endpoint whose turn it is, or of the one that came last. */
  take(whose: 'turn' | 'latest' = 'turn'): Waiting | undefined {
    const queues = whose === 'turn' ? this.#queues : [...this.#queues].slice(-1);
    for (const [endpointId, queue] of queues) {
      for (const waiting of queue.values()) {
        this.delete(waiting);
        // Its next turn comes after everybody else's.
        if (this.#queues.delete(endpointId)) this.#queues.set(endpointId, queue);
        return waiting;
      }
    }
    return undefined;
  }

  delete(waiting: Waiting): void {
    const queue = this.#queues.get(waiting.endpointId);
    queue?.delete(waiting.id);
    if (queue?.size === 0) this.#queues.delete(waiting.endpointId);
  }

  takeAll(endpointId: string): Waiting[] {
    const queue = this.#queues.get(endpointId);
    this.#queues.delete(endpointId);
    return [...(queue?.values() ?? [])];
  }
}

/** So that the memory stays bounded; an endpoint forgotten too early goes ahead of others once more. */
const TRIED_REMEMBERED_MAX = 10_000;

type Urgency = 'new' | 'first' | 'retry';

/**
 * Of endpoints never tried the latest goes first, and every so many times the one that waits longest: those that hang
 * gather at the front, and would hold up every new one for a deadline each.
 */
const NEW_OLDEST_EVERY = 4;

class LaneQueue {
  readonly turns: Record<Urgency, Turns> = { new: new Turns(), first: new Turns(), retry: new Turns() };
  waiting = 0;
  inUse = 0;

  #newTaken = 0;

  take(): Waiting | undefined {
    const isOldest = this.#newTaken % NEW_OLDEST_EVERY === NEW_OLDEST_EVERY - 1;
    const ofNew = this.turns.new.take(isOldest ? 'turn' : 'latest');
    if (ofNew !== undefined) this.#newTaken += 1;
    return ofNew ?? this.turns.first.take() ?? this.turns.retry.take();
  }
}

/**
 * Who gets a worker's slots next, so that receivers which hang or fail do not delay the rest.
 * - Suspects never hold more than `suspectsMax` slots. When both lanes wait, suspects get one slot and the proven the
 *   others; a lane that waits alone gets all that it may.
 * - Within a lane first attempts go before retries, and endpoints take turns. Among suspects, endpoints never tried
 *   go before those that failed. The first start tries an endpoint: what else waits for it is not new any more, or a
 *   long queue for a new endpoint that hangs would hold up the next new one. Three times of four the latest of them goes
 *   first, so that several that hang do not hold up the next one either.
 *
 * No timers and no clock: everything happens within `enqueue`, `release` and `setLane`.
 */
export class Slots {
  readonly #total: number;
  readonly #suspectsMax: number;
  readonly #lanes: Record<Lane, LaneQueue> = { proven: new LaneQueue(), suspect: new LaneQueue() };
  readonly #places = new Map<string, { waiting: Waiting; lane: Lane; urgency: Urgency }>();
  /** Endpoints that started here lately, latest last: `isNew` may have been read before that. */
  readonly #tried = new Set<string>();
  #isStarting = false;

  constructor({ total, suspectsMax }: { total: number; suspectsMax: number }) {
    if (suspectsMax < 1 || suspectsMax > total) throw new RangeError('Suspects need from one slot to all of them.');
    this.#total = total;
    this.#suspectsMax = suspectsMax;
  }

  /** Slots taken, of both lanes. */
  get inUse(): number {
    return this.#lanes.proven.inUse + this.#lanes.suspect.inUse;
  }

  waiting(lane: Lane): number {
    return this.#lanes[lane].waiting;
  }

  /** Starts it now or later. @throws Error when that id waits already. */
  enqueue(waiting: Waiting): void {
    if (this.#places.has(waiting.id)) throw new Error(`${waiting.id} waits for a slot already.`);
    this.#add(waiting, waiting.lane, waiting.isNew);
    this.#startAll();
  }

  /** Gives back a slot. @param lane what `start` was called with. */
  release(lane: Lane): void {
    if (this.#lanes[lane].inUse === 0) throw new Error(`No slot of the ${lane} lane is taken.`);
    this.#lanes[lane].inUse -= 1;
    this.#startAll();
  }

  /** Stops waiting. @returns false when that id does not wait: it started, or was never here. */
  remove(id: string): boolean {
    const place = this.#places.get(id);
    if (place === undefined) return false;
    this.#lanes[place.lane].turns[place.urgency].delete(place.waiting);
    this.#forget(place.waiting, place.lane);
    return true;
  }

  /** Moves what waits for an endpoint once an attempt has told which lane it belongs to. What runs stays as it is. */
  setLane(endpointId: string, lane: Lane): void {
    const from = lane === 'proven' ? 'suspect' : 'proven';
    const { turns } = this.#lanes[from];
    for (const waiting of (['new', 'first', 'retry'] as const).flatMap((each) => turns[each].takeAll(endpointId))) {
      this.#forget(waiting, from);
      this.#add(waiting, lane, false);
    }
    this.#startAll();
  }

  #add(waiting: Waiting, lane: Lane, isNew: boolean): void {
    const goesAhead = lane === 'suspect' && isNew && !this.#tried.has(waiting.endpointId);
    const urgency = goesAhead ? 'new' : waiting.isRetry ? 'retry' : 'first';
    this.#places.set(waiting.id, { waiting, lane, urgency });
    this.#lanes[lane].turns[urgency].push(waiting);
    this.#lanes[lane].waiting += 1;
  }

  #forget(waiting: Waiting, lane: Lane): void {
    this.#places.delete(waiting.id);
    this.#lanes[lane].waiting -= 1;
  }

  #startAll(): void {
    // A start that ends at once gives its slot back from within: the loop below goes on with it, without recursion.
    if (this.#isStarting) return;
    this.#isStarting = true;
    try {
      for (let lane = this.#nextLane(); lane !== null; lane = this.#nextLane()) this.#startOne(lane);
    } finally {
      this.#isStarting = false;
    }
  }

  #nextLane(): Lane | null {
    const { proven, suspect } = this.#lanes;
    if (this.inUse >= this.#total) return null;
    if (suspect.waiting > 0 && suspect.inUse === 0) return 'suspect';
    if (proven.waiting > 0) return 'proven';
    return suspect.waiting > 0 && suspect.inUse < this.#suspectsMax ? 'suspect' : null;
  }

  #startOne(lane: Lane): void {
    const queue = this.#lanes[lane];
    const waiting = queue.take();
    if (waiting === undefined) return;
    this.#forget(waiting, lane);
    this.#remember(waiting.endpointId);
    for (const other of queue.turns.new.takeAll(waiting.endpointId)) {
      this.#forget(other, lane);
      this.#add(other, lane, false);
    }
    queue.inUse += 1;
    waiting.start(lane);
  }

  #remember(endpointId: string): void {
    this.#tried.delete(endpointId);
    this.#tried.add(endpointId);
    for (const oldest of this.#tried) {
      if (this.#tried.size <= TRIED_REMEMBERED_MAX) return;
      this.#tried.delete(oldest);
    }
  }
}
